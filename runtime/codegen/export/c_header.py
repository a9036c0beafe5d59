"""The header of a C library, and a small program that calls it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runtime import errors
from runtime.codegen.export.c_interface import Parameter, Result
from runtime.codegen.export.c_library import CFunction
from runtime.codegen.export.c_weights import Weight
from runtime.dtypes import DType

_TYPES = {"bool": "bool", "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t"}
_ONES = {"float16": "0x3C00", "bfloat16": "0x3F80"}
_FORMATS = {"float32": "%.9g", "float64": "%.17g", "bool": "%d"}
_MESSAGE = 1024


def c_type(dtype: DType | None) -> str:
    """`float`, `int64_t`, ...: the type in C of a dtype's numbers; of floats of 16 bits that of their bits."""
    assert dtype is not None
    return _TYPES.get(dtype.name) or f"{dtype.name}_t"


def prototype(name: str, function: CFunction) -> str:
    """The declaration of a function of the library `name`, without a semicolon."""
    kind = "" if function.assigns_weights else "const "
    found = [f"{kind}{name}_weights *weights"] if function.takes_weights else []
    for each in _given(function):
        is_array = each.slot.kind == "array"
        found.append(f"{'const ' if is_array else ''}{c_type(each.slot.dtype)} {'*' if is_array else ''}{each.name}")
        found += [f"int64_t {each.name}_dim{axis}" for axis in each.open_axes]
    for result in _wanted(function):
        found.append(f"{c_type(result.slot.dtype)} {'**' if result.slot.kind == 'array' else '*'}{result.name}")
        if result.gives_sizes:
            found.append(f"int64_t {result.name}_dims[{len(result.shape)}]")
    found += ["char *message", "size_t message_size"]
    one_line = f"int {function.name}({', '.join(found)})"
    return one_line if len(one_line) <= 100 else f"int {function.name}(\n    " + ",\n    ".join(found) + ")"


def header(name: str, functions: Sequence[CFunction], version: str, weights: Sequence[Weight] = ()) -> str:
    """The text of `NAME.h`."""
    guard = f"{name.upper()}_H"
    codes = {number: error for error, number in errors.CODES.items()}
    own = {
        errors.UNKNOWN: "an exception of Python's, which the message names",
        errors.INVALID_ARGUMENT: "a value, an index or a size that isn't allowed; a failed assertion",
        errors.RESOURCE_EXHAUSTED: "no memory is left for an array",
    }
    if weights:
        own[errors.DATA_LOSS] = "a file of weights that is damaged"
    raised = (errors.NOT_FOUND, errors.FAILED_PRECONDITION, errors.OUT_OF_RANGE, errors.UNIMPLEMENTED, errors.INTERNAL)
    meanings = {**own, **dict.fromkeys(raised, "raised by the function")}
    prefix = name.upper()
    enum = [f"    {prefix}_OK = 0,"]
    enum += [f"    {prefix}_{_constant(codes[code])} = {code}, /* {meanings[code]} */" for code in sorted(meanings)]
    lines = [
        f"/* {name}: made by autograph-numba {version}. Link it with -lm -lpthread.",
        "",
        "   Arrays are contiguous, in row-major order. A function allocates its array results: free each of them by",
        f"   {name}_free. A null pointer in the place of a result declines it. Functions return {prefix}_OK or an",
        "   error's code. After an error no result may be used, and `message`, which may be null if message_size is 0,",
        "   says what is wrong. Functions keep no state, and may be called from several threads at once. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdbool.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "enum {",
        *enum,
        "};",
    ]
    assigns = any(function.assigns_weights for function in functions)
    lines += _loading(name, weights, assigns) if weights else []
    for function in functions:
        lines += ["", *_comment(function), f"{prototype(name, function)};"]
    lines += [
        "",
        "/* Frees an array result. Null is allowed. */",
        f"void {name}_free(void *array);",
        "",
        "/* The number of threads that large loops use, 1 at first. Not while another thread is in a function. */",
        f"void {name}_set_threads(int64_t count);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _loading(name: str, weights: Sequence[Weight], assigns: bool) -> list[str]:
    listed = [f"     {each.name}: {each.dtype.name}[{', '.join(map(str, each.shape))}]" for each in weights]
    threads = ["/* Weights, which any number of threads may use at once. */"]
    if assigns:
        threads = [
            "/* Weights. A function that takes them without `const` changes some of them; after an error all are as",
            "   they were. While one runs, no other thread may use the same weights. */",
        ]
    return [
        "",
        *threads,
        f"typedef struct {name}_weights {name}_weights;",
        "",
        "/* Loads the weights from a safetensors file, which must hold these tensors and no others:",
        "",
        *(line.replace("*/", "* /") for line in listed),
        "",
        f"   *weights is null after an error. Free it by {name}_unload. */",
        f"int {name}_load(const char *path, {name}_weights **weights, char *message, size_t message_size);",
        "",
        "/* Frees weights. Null is allowed. */",
        f"void {name}_unload({name}_weights *weights);",
    ]


def _constant(error: str) -> str:
    words = error.removesuffix("Error")
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(words)).upper()


def _given(function: CFunction) -> Iterator[Parameter]:
    return (each for each in function.parameters if each.is_given)


def _wanted(function: CFunction) -> Iterator[Result]:
    return (each for each in function.results if each.is_given)


def _comment(function: CFunction) -> list[str]:
    lines = [*function.doc, ""] if function.doc else []
    for parameter in _given(function):
        lines.append(f"{parameter.name}: {_described(parameter)}")
    for result in _wanted(function):
        lines.append(f"{result.name}: {_described(result)}{'; to be freed' if result.slot.kind == 'array' else ''}")
    text = [line.replace("*/", "* /") for line in lines]
    return [f"/* {text[0]}", *(f"   {line}".rstrip() for line in text[1:]), "*/"] if text else []


def _described(each: Parameter | Result) -> str:
    assert each.slot.dtype is not None
    bits = " (the bits of each)" if each.slot.dtype.is_narrow else ""
    if each.slot.kind == "scalar":
        return each.slot.dtype.name + bits
    is_parameter = isinstance(each, Parameter)
    sizes = [
        str(size) if size is not None else f"{each.name}_dim{axis}" if is_parameter else f"{each.name}_dims[{axis}]"
        for axis, size in enumerate(each.shape)
    ]
    return f"{each.slot.dtype.name}[{', '.join(sizes)}]{bits}"


def example(name: str, functions: Sequence[CFunction], file: str | None = None) -> str:
    """The text of a `main.c` that calls each function with ones (sizes that are open are 2) and prints the results.

    file: what the file of weights is called that it loads if it is given no other, if there is one.
    """
    lines = [
        f'#include "{name}.h"',
        "",
        "#include <inttypes.h>",
        "#include <stdio.h>",
        "",
        "int main(void) {" if file is None else "int main(int count, char **arguments) {",
        f"    char message[{_MESSAGE}];",
        "    int code;",
    ]
    if file is not None:
        lines += [
            f"    {name}_weights *weights;",
            f'    code = {name}_load(count > 1 ? arguments[1] : "{file}", &weights, message, sizeof message);',
            "    if (code) {",
            f'        fprintf(stderr, "{name}_load: error %d: %s\\n", code, message);',
            "        return 1;",
            "    }",
        ]
    for function in functions:
        lines += _call(name, function)
    lines += [] if file is None else [f"    {name}_unload(weights);"]
    return "\n".join([*lines, "    return 0;", "}"]) + "\n"


def _call(name: str, function: CFunction) -> Iterator[str]:
    yield from ("", "    {")
    given = ["weights"] if function.takes_weights else []
    for each in _given(function):
        assert each.slot.dtype is not None
        one = _ONES.get(each.slot.dtype.name, "1")
        if each.slot.kind == "scalar":
            yield f"        {c_type(each.slot.dtype)} {each.name} = {one};"
            given.append(each.name)
            continue
        count = 1
        for size in each.shape:
            count *= 2 if size is None else size
        yield f"        {c_type(each.slot.dtype)} {each.name}[{max(count, 1)}];"
        if count:
            yield f"        for (int64_t i = 0; i < {count}; i++) {each.name}[i] = {one};"
        given += [each.name, *("2" for _ in each.open_axes)]
    for result in _wanted(function):
        type_ = c_type(result.slot.dtype)
        if result.slot.kind == "array":
            yield f"        {type_} *{result.name} = NULL;"
        else:
            yield f"        {type_} {result.name};"
        given.append(f"&{result.name}")
        if result.gives_sizes:
            yield f"        int64_t {result.name}_dims[{len(result.shape)}];"
            given.append(f"{result.name}_dims")
    call = f"{function.name}({', '.join([*given, 'message', 'sizeof message'])})"
    yield f"        code = {call};"
    yield "        if (code) {"
    yield f'            fprintf(stderr, "{function.name}: error %d: %s\\n", code, message);'
    yield "            return 1;"
    yield "        }"
    for result in _wanted(function):
        assert result.slot.dtype is not None
        format_, cast = _format(result.slot.dtype)
        if result.slot.kind == "scalar":
            yield f'        printf("{result.name} = {format_}\\n", {cast}{result.name});'
            continue
        sizes = " * ".join(
            f"{result.name}_dims[{axis}]" if result.gives_sizes else str(size) for axis, size in enumerate(result.shape)
        )
        yield f'        printf("{result.name} =");'
        yield f'        for (int64_t i = 0; i < {sizes}; i++) printf(" {format_}", {cast}{result.name}[i]);'
        yield '        printf("\\n");'
        yield f"        {name}_free({result.name});"
    yield "    }"


def _format(dtype: DType) -> tuple[str, str]:
    if dtype.name in _FORMATS:
        return _FORMATS[dtype.name], ""
    return ('%" PRIu64 "', "(uint64_t)") if dtype.is_unsigned or dtype.is_narrow else ('%" PRId64 "', "(int64_t)")
