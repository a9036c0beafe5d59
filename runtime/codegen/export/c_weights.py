"""The part of a C library that loads weights from a safetensors file, as C99 source.

    int NAME_load(const char *path, NAME_weights **weights, char *message, size_t message_size)
    void NAME_unload(NAME_weights *weights)

A file is 8 bytes with the length of its header, little-endian, the header, which is JSON, and the arrays one behind the
other. The library knows what must be in it: all of these tensors, with these dtypes and shapes, and nothing else. The
reader takes no byte on trust: lengths are compared with what there is before anything is read, numbers with what fits,
and arrays must fill the file without gaps or overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime import errors
from runtime.dataclass import dataclass
from runtime.dtypes import DType

# What the format calls the dtypes that kernels take.
_NAMES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64",
}  # fmt: skip


@dataclass(frozen=True)
class Weight:
    """A tensor in the file."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


def text(name: str, weights: Sequence[Weight]) -> str:
    """The source of `NAME_weights.c`."""
    most = max([1, *(len(each.shape) for each in weights)])
    rows = [_row(each) for each in weights]
    return (
        _SOURCE.replace("@NAME@", name)
        .replace("@COUNT@", str(len(weights)))
        .replace("@RANK@", str(most))
        .replace("@ROWS@", "\n".join(rows))
        .replace("@INVALID@", str(errors.INVALID_ARGUMENT))
        .replace("@MISSING@", str(errors.NOT_FOUND))
        .replace("@MEMORY@", str(errors.RESOURCE_EXHAUSTED))
        .replace("@DAMAGED@", str(errors.DATA_LOSS))
    )


def _row(each: Weight) -> str:
    facts = [_string(each.name), len(each.name.encode()), f'"{_NAMES[each.dtype.name]}"', each.dtype.np.itemsize]
    shape = ", ".join(map(str, each.shape)) or "0"
    return f"    {{{', '.join(map(str, facts))}, {len(each.shape)}, {{{shape}}}}},"


def _string(value: str) -> str:
    """A string of C, in octal where C's own meaning could get in the way."""
    plain = "".join(
        chr(byte) if chr(byte).isalnum() or chr(byte) in "_-./: " else f"\\{byte:03o}" for byte in value.encode()
    )
    return f'"{plain}"'


_SOURCE = r"""/* Loads the weights of @NAME@ from a safetensors file. C99; needs the C library only. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT @COUNT@
#define LONGEST_HEADER 100000000u
#define ALIGNMENT 64

typedef struct @NAME@_weights {
    void *data[COUNT]; /* functions read these by their places */
    void *block;
} @NAME@_weights;

static const struct {
    const char *name;
    size_t length;
    const char *dtype;
    uint64_t item;
    int rank;
    uint64_t shape[@RANK@];
} expected[COUNT] = {
@ROWS@
};

typedef struct {
    uint64_t begin, end;
    int seen;
} Place;

typedef struct {
    const unsigned char *at, *end;
    char *message;
    size_t room;
    int code;
} Reader;

static int fail(Reader *r, int code, const char *format, ...) {
    if (!r->code) {
        va_list arguments;
        r->code = code;
        va_start(arguments, format);
        if (r->room) vsnprintf(r->message, r->room, format, arguments);
        va_end(arguments);
    }
    return 0;
}

static int damaged(Reader *r, const char *what) {
    return fail(r, @DAMAGED@, "DataLossError: the file is not a safetensors file, or is damaged: %s", what);
}

static void spaces(Reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static int peek(Reader *r) {
    spaces(r);
    return r->at < r->end ? *r->at : -1;
}

static int take(Reader *r, int wanted) {
    if (peek(r) != wanted) return damaged(r, "its header is not the JSON that is expected");
    r->at++;
    return 1;
}

static int hex(Reader *r, unsigned *code) {
    int digit, i;
    *code = 0;
    for (i = 0; i < 4; i++) {
        if (r->at >= r->end) return damaged(r, "a string in its header does not end");
        digit = *r->at++;
        if (digit >= '0' && digit <= '9') digit -= '0';
        else if (digit >= 'a' && digit <= 'f') digit -= 'a' - 10;
        else if (digit >= 'A' && digit <= 'F') digit -= 'A' - 10;
        else return damaged(r, "a string in its header has a wrong escape");
        *code = *code * 16 + (unsigned)digit;
    }
    return 1;
}

/* A string without its quotes and escapes, in UTF-8, in a buffer at least as long as what is left of the header. */
static int string(Reader *r, char *target, size_t *length) {
    size_t n = 0;
    if (!take(r, '"')) return 0;
    for (;;) {
        int c = r->at < r->end ? *r->at++ : -1;
        unsigned code, low;
        if (c < 0) return damaged(r, "a string in its header does not end");
        if (c == '"') break;
        if (c < 0x20) return damaged(r, "a string in its header holds a control character");
        if (c != '\\') {
            target[n++] = (char)c;
            continue;
        }
        c = r->at < r->end ? *r->at++ : -1;
        switch (c) {
        case '"': case '\\': case '/': target[n++] = (char)c; continue;
        case 'b': target[n++] = '\b'; continue;
        case 'f': target[n++] = '\f'; continue;
        case 'n': target[n++] = '\n'; continue;
        case 'r': target[n++] = '\r'; continue;
        case 't': target[n++] = '\t'; continue;
        case 'u': break;
        default: return damaged(r, "a string in its header has a wrong escape");
        }
        if (!hex(r, &code)) return 0;
        if (code >= 0xD800 && code < 0xDC00) { /* the first of two that are one character */
            if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
                return damaged(r, "a string in its header has a wrong escape");
            r->at += 2;
            if (!hex(r, &low)) return 0;
            if (low < 0xDC00 || low > 0xDFFF) return damaged(r, "a string in its header has a wrong escape");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xDC00 && code < 0xE000) {
            return damaged(r, "a string in its header has a wrong escape");
        }
        if (code < 0x80) {
            target[n++] = (char)code;
        } else if (code < 0x800) {
            target[n++] = (char)(0xC0 | code >> 6);
            target[n++] = (char)(0x80 | (code & 63));
        } else if (code < 0x10000) {
            target[n++] = (char)(0xE0 | code >> 12);
            target[n++] = (char)(0x80 | (code >> 6 & 63));
            target[n++] = (char)(0x80 | (code & 63));
        } else {
            target[n++] = (char)(0xF0 | code >> 18);
            target[n++] = (char)(0x80 | (code >> 12 & 63));
            target[n++] = (char)(0x80 | (code >> 6 & 63));
            target[n++] = (char)(0x80 | (code & 63));
        }
    }
    target[n] = 0;
    *length = n;
    return 1;
}

static int number(Reader *r, uint64_t *value) {
    int c = peek(r);
    const unsigned char *first = r->at;
    if (c < '0' || c > '9') return damaged(r, "its header has something else where a number is expected");
    *value = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
        uint64_t digit = (uint64_t)(*r->at++ - '0');
        if (*value > (UINT64_MAX - digit) / 10) return damaged(r, "a number in its header is too large");
        *value = *value * 10 + digit;
    }
    if (*first == '0' && r->at - first > 1) return damaged(r, "a number in its header begins with 0");
    return 1;
}

/* Comma or the closing character; 1: there is another item, 0: the end or an error. */
static int another(Reader *r, int closing) {
    int c = peek(r);
    if (c == ',') {
        r->at++;
        return 1;
    }
    take(r, closing);
    return 0;
}

static int is(const char *text, size_t length, const char *wanted) {
    return length == strlen(wanted) && memcmp(text, wanted, length) == 0;
}

/* {"key": "text", ...} */
static int metadata(Reader *r, char *buffer) {
    size_t length;
    if (!take(r, '{')) return 0;
    if (peek(r) == '}') {
        r->at++;
        return 1;
    }
    do {
        if (!string(r, buffer, &length) || !take(r, ':') || !string(r, buffer, &length)) return 0;
    } while (another(r, '}'));
    return !r->code;
}

static int tensor(Reader *r, int which, Place *place, char *buffer) {
    int parts = 0, rank, same;
    size_t length;
    uint64_t value, bytes = expected[which].item;
    for (rank = 0; rank < expected[which].rank; rank++) bytes *= expected[which].shape[rank];
    if (!take(r, '{')) return 0;
    do {
        if (!string(r, buffer, &length) || !take(r, ':')) return 0;
        if (is(buffer, length, "dtype") && !(parts & 1)) {
            parts |= 1;
            if (!string(r, buffer, &length)) return 0;
            if (!is(buffer, length, expected[which].dtype))
                return fail(r, @INVALID@,
                            "InvalidArgumentError: the tensor '%s' has the dtype %.16s in the file, not %s",
                            expected[which].name, buffer, expected[which].dtype);
        } else if (is(buffer, length, "shape") && !(parts & 2)) {
            parts |= 2;
            if (!take(r, '[')) return 0;
            rank = 0;
            same = 1;
            if (peek(r) == ']') {
                r->at++;
            } else {
                do {
                    if (!number(r, &value)) return 0;
                    if (rank >= expected[which].rank || value != expected[which].shape[rank]) same = 0;
                    if (rank < expected[which].rank) rank++;
                } while (another(r, ']'));
                if (r->code) return 0;
            }
            if (!same || rank != expected[which].rank)
                return fail(r, @INVALID@,
                            "InvalidArgumentError: the tensor '%s' has another shape in the file than here",
                            expected[which].name);
        } else if (is(buffer, length, "data_offsets") && !(parts & 4)) {
            parts |= 4;
            if (!take(r, '[') || !number(r, &place->begin) || !take(r, ',') || !number(r, &place->end) || !take(r, ']'))
                return 0;
        } else {
            return damaged(r, "its header says something of a tensor twice, or something unknown");
        }
    } while (another(r, '}'));
    if (r->code) return 0;
    if (parts != 7) return damaged(r, "its header lacks the dtype, the shape or the place of a tensor");
    if (place->end < place->begin || place->end - place->begin != bytes)
        return damaged(r, "the place of a tensor does not fit its dtype and shape");
    return 1;
}

static int header(Reader *r, Place *places, char *buffer) {
    size_t length;
    int which, had_metadata = 0;
    if (r->at >= r->end || *r->at != '{') return damaged(r, "its header does not begin with {");
    r->at++;
    if (peek(r) == '}') {
        r->at++;
    } else {
        do {
            if (!string(r, buffer, &length) || !take(r, ':')) return 0;
            if (is(buffer, length, "__metadata__")) {
                if (had_metadata++) return damaged(r, "its header has two entries of one name");
                if (!metadata(r, buffer)) return 0;
                continue;
            }
            for (which = 0; which < COUNT; which++)
                if (length == expected[which].length && memcmp(buffer, expected[which].name, length) == 0) break;
            if (which == COUNT)
                return fail(r, @INVALID@, "InvalidArgumentError: the library knows no tensor '%.100s'", buffer);
            if (places[which].seen++) return damaged(r, "its header has two entries of one name");
            if (!tensor(r, which, &places[which], buffer)) return 0;
        } while (another(r, '}'));
        if (r->code) return 0;
    }
    if (peek(r) != -1) return damaged(r, "something follows its header's JSON");
    for (which = 0; which < COUNT; which++)
        if (!places[which].seen)
            return fail(r, @INVALID@, "InvalidArgumentError: the file lacks the tensor '%s'", expected[which].name);
    return 1;
}

/* Reads the arrays in the order in which they stand in the file. */
static int arrays(Reader *r, FILE *file, Place *places, @NAME@_weights *made) {
    uint64_t at = 0, i, bytes;
    int done, which;
    for (done = 0; done < COUNT; done++) {
        /* Of those that begin here, arrays without elements come first. */
        int next = -1;
        for (which = 0; which < COUNT; which++)
            if (places[which].seen && places[which].begin == at && (next < 0 || places[which].end < places[next].end))
                next = which;
        if (next < 0) return damaged(r, "its arrays overlap, or there are gaps between them");
        places[next].seen = 0;
        bytes = places[next].end - at;
        if (bytes && fread(made->data[next], 1, (size_t)bytes, file) != bytes)
            return damaged(r, "it ends before its arrays do");
        if (strcmp(expected[next].dtype, "BOOL") == 0)
            for (i = 0; i < bytes; i++)
                if (((unsigned char *)made->data[next])[i] > 1) return damaged(r, "a boolean is neither 0 nor 1");
        at += bytes;
    }
    if (fgetc(file) != EOF) return damaged(r, "something follows its arrays");
    return 1;
}

static @NAME@_weights *allocate(Reader *r) {
    @NAME@_weights *made = malloc(sizeof *made);
    uint64_t total = ALIGNMENT, places[COUNT];
    int which, axis;
    for (which = 0; which < COUNT; which++) {
        uint64_t bytes = expected[which].item;
        for (axis = 0; axis < expected[which].rank; axis++) bytes *= expected[which].shape[axis];
        places[which] = total;
        total += (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    }
    if (made) made->block = total > SIZE_MAX ? NULL : malloc((size_t)total);
    if (!made || !made->block) {
        free(made);
        fail(r, @MEMORY@, "ResourceExhaustedError: no memory is left for the weights");
        return NULL;
    }
    for (which = 0; which < COUNT; which++) {
        uintptr_t start = ((uintptr_t)made->block + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - ALIGNMENT;
        made->data[which] = (char *)start + places[which];
    }
    return made;
}

void @NAME@_unload(@NAME@_weights *weights) {
    if (weights) {
        free(weights->block);
        free(weights);
    }
}

static @NAME@_weights *read_file(Reader *r, FILE *file) {
    unsigned char size[8], *content = NULL;
    char *buffer = NULL;
    uint64_t length = 0;
    int i, good = 0;
    Place places[COUNT];
    @NAME@_weights *made = NULL;
    memset(places, 0, sizeof places);
    if (fread(size, 1, 8, file) != 8) {
        damaged(r, "it has less than 8 bytes");
        return NULL;
    }
    for (i = 7; i >= 0; i--) length = length << 8 | size[i];
    if (length > LONGEST_HEADER) {
        damaged(r, "its header would be longer than 100 MB");
        return NULL;
    }
    /* Read in pieces: a damaged length must not take more memory than the file is long. */
    {
        size_t have = 0, room = 0;
        while (have < length) {
            size_t wanted = (size_t)length - have < 65536 ? (size_t)length - have : 65536, got;
            if (room - have < wanted) {
                unsigned char *larger = realloc(content, room = 2 * room + 65536);
                if (!larger) {
                    fail(r, @MEMORY@, "ResourceExhaustedError: no memory is left for the header");
                    goto end;
                }
                content = larger;
            }
            got = fread(content + have, 1, wanted, file);
            have += got;
            if (got < wanted) {
                damaged(r, "it ends before its header does");
                goto end;
            }
        }
    }
    buffer = malloc((size_t)length + 1);
    if (!buffer) {
        fail(r, @MEMORY@, "ResourceExhaustedError: no memory is left for the header");
        goto end;
    }
    r->at = content;
    r->end = content ? content + length : NULL;
    if (!content) damaged(r, "it has no header");
    else if (header(r, places, buffer) && (made = allocate(r)) != NULL) good = arrays(r, file, places, made);
end:
    free(buffer);
    free(content);
    if (!good) {
        @NAME@_unload(made);
        made = NULL;
    }
    return made;
}

int @NAME@_load(const char *path, @NAME@_weights **weights, char *message, size_t message_size) {
    Reader r;
    FILE *file;
    memset(&r, 0, sizeof r);
    r.message = message;
    r.room = message_size;
    if (message_size) message[0] = 0;
    if (!weights || !path) {
        fail(&r, @INVALID@, "InvalidArgumentError: the path or the place for the weights is a null pointer");
        return r.code;
    }
    *weights = NULL;
    file = fopen(path, "rb");
    if (!file) {
        fail(&r, @MISSING@, "NotFoundError: %.200s can't be opened: %s", path, strerror(errno));
        return r.code;
    }
    *weights = read_file(&r, file);
    fclose(file);
    return r.code;
}
"""
