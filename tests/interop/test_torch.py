"""`ag.interop.torch`, in PyTorch itself: every way of differentiating, compiling and sharing memory."""

import threading
from typing import NamedTuple

import numpy as np
import pytest

import autograph as ag
from tests.interop.functions import cube_root

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install -e '.[torch]'; python -m tests.interop")
wrap = ag.interop.torch.wrap
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


root = wrap(cube_root)
product = wrap(lambda a, b: a * b)
A = torch.tensor([8.0, 27.0, 1.5], dtype=torch.float64)
SLOPE, CURVATURE = A ** (-2 / 3) / 3, -2 / 9 * A ** (-5 / 3)


def total(a):
    return root(a).sum()


def tracked(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


class TestDerivatives:
    def test_backward_also_when_the_graph_is_kept(self):
        a = A.clone().requires_grad_()
        y = total(a)
        y.backward(retain_graph=True)
        y.backward()
        torch.testing.assert_close(a.grad, 2 * SLOPE)

    def test_double_backward(self):
        a = A.clone().requires_grad_()
        (first,) = torch.autograd.grad(total(a), a, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), a, create_graph=True)
        torch.testing.assert_close(second, CURVATURE)
        (third,) = torch.autograd.grad(second.sum(), a)
        torch.testing.assert_close(third, 10 / 27 * A ** (-8 / 3))

    def test_gradcheck_in_both_modes_and_to_second_order(self):
        a = tracked(8.0, 1.5)
        assert torch.autograd.gradcheck(root, (a,), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(root, (a,), check_fwd_over_rev=True)

    def test_complex_numbers(self):
        f = wrap(lambda z: z * z * ag.exp(z))
        z = torch.tensor([0.3 + 0.2j, -1.0 + 0.5j], dtype=torch.complex128, requires_grad=True)
        assert torch.autograd.gradcheck(f, (z,))
        torch.testing.assert_close(f(z.conj()), z.conj() ** 2 * torch.exp(z.conj()))

    def test_only_what_requires_a_gradient_gets_one(self):
        a, b = tracked(1.0, 2.0), torch.tensor([3.0, 4.0], dtype=torch.float64)
        y = product(a, b)
        assert y.requires_grad
        assert not product(b, b).requires_grad
        with torch.no_grad():
            assert not product(a, b).requires_grad
        y.sum().backward()
        assert a.grad.tolist() == [3.0, 4.0]
        assert b.grad is None

    def test_whole_numbers_among_arguments_and_results(self):
        f = wrap(lambda x, n: (x * ag.cast(n, x.dtype), n + 1))
        x, n = tracked(1.0, 2.0), torch.tensor([3, 4])
        y, m = f(x, n)
        assert (m.tolist(), m.dtype, m.requires_grad) == ([4, 5], torch.int64, False)
        y.sum().backward()
        assert x.grad.tolist() == [3.0, 4.0]


class TestTransforms:
    def test_grad_to_second_order(self):
        slope = torch.func.grad(total)
        torch.testing.assert_close(slope(A), SLOPE)
        torch.testing.assert_close(torch.func.grad(lambda a: slope(a).sum())(A), CURVATURE)

    def test_vjp_and_jvp(self):
        ones = torch.ones_like(A)
        torch.testing.assert_close(torch.func.vjp(root, A)[1](ones)[0], SLOPE)
        torch.testing.assert_close(torch.func.jvp(root, (A,), (ones,))[1], SLOPE)
        nested = torch.func.jvp(lambda a: torch.func.jvp(root, (a,), (ones,))[1], (A,), (ones,))[1]
        torch.testing.assert_close(nested, CURVATURE)

    def test_jacobians_and_hessian(self):
        expected = torch.diag(CURVATURE)
        torch.testing.assert_close(torch.func.hessian(total)(A), expected)
        torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(total))(A), expected)
        torch.testing.assert_close(torch.func.jacfwd(root)(A), torch.diag(SLOPE))

    def test_vmap(self):
        rows = torch.stack([A, 2 * A], 1)
        torch.testing.assert_close(torch.func.vmap(root, in_dims=1, out_dims=1)(rows), rows ** (1 / 3))
        slopes = torch.func.vmap(torch.func.grad(total))(rows.T)
        torch.testing.assert_close(slopes, rows.T ** (-2 / 3) / 3)
        assert torch.func.vmap(torch.func.vmap(product, (None, 0)), (0, None))(A, A).shape == (3, 3)


class TestCompile:
    @pytest.fixture(autouse=True)
    def _anew(self):
        torch._dynamo.reset()

    @staticmethod
    def compiled(function, **options):
        return torch.compile(function, fullgraph=True, backend="aot_eager", **options)

    def test_forward_and_backward(self):
        f = self.compiled(lambda a: (root(2 * a) ** 2).sum())
        one, other = A.clone().requires_grad_(), A.clone().requires_grad_()
        f(one).backward()
        (root(2 * other) ** 2).sum().backward()
        torch.testing.assert_close(one.grad, other.grad)

    def test_structures(self):
        f = wrap(lambda d, k: {"y": d["x"] * d["n"][0] * float(k), "none": None, "pair": (d["x"], [d["x"]])})
        d = {"x": torch.ones(2), "n": [torch.tensor(2.0)]}
        plain, fast = f(d, k=3), self.compiled(f)(d, k=3)
        assert list(plain) == list(fast) == ["y", "none", "pair"]
        assert fast["y"].tolist() == plain["y"].tolist() == [6.0, 6.0]
        assert fast["none"] is plain["none"] is None
        assert type(fast["pair"][1]) is type(plain["pair"][1]) is list

    def test_sizes_that_depend_on_values(self):
        f = wrap(lambda x: ag.unique(x)[0])
        assert f(torch.tensor([1, 2, 1])).tolist() == [1, 2]
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            g = self.compiled(lambda x: f(x) + 1)
            assert g(torch.tensor([1, 2, 1])).tolist() == [2, 3]
            assert g(torch.tensor([1, 1, 1])).tolist() == [2]

    def test_dynamic_shapes(self):
        f = self.compiled(lambda x: product(x, x).sum(), dynamic=True)
        assert [f(torch.ones(n)).item() for n in (3, 4, 5)] == [3.0, 4.0, 5.0]

    def test_the_operator_passes_pytorchs_own_checks(self):
        f = wrap(cube_root)
        f(A)
        (program,) = f._programs._made.values()
        operator = torch.ops.autograph.call.default
        torch.library.opcheck(operator, (program.number, [A.clone().requires_grad_()]))


class TestMemory:
    def test_arguments_and_results_are_shared(self):
        seen = []

        def look(x):
            seen.append(x.__array_interface__["data"][0])
            return x

        f = wrap(lambda x: ag.numpy_function(look, [x], ag.float32) + 1.0)
        x = torch.ones(1000)
        f(x)
        assert x.data_ptr() in seen

    def test_constants_and_arguments_are_copied(self):
        f = wrap(lambda x: (x, ag.constant([1.0, 2.0]), ag.reshape(x, [1, 2])))
        x = torch.ones(2)
        for result in f(x):
            result.add_(1.0)
        assert x.tolist() == [1.0, 1.0]
        assert [each.flatten().tolist() for each in f(x)] == [[1.0, 1.0], [1.0, 2.0], [1.0, 1.0]]

    @pytest.mark.parametrize("jit_compile", [True, False])
    def test_captured_values_are_copied(self, jit_compile):
        captured, variable = ag.exp(ag.constant([0.0, 0.0])), ag.Variable([3.0, 4.0])

        def give(x):
            return captured, variable, ag.reshape(variable, [1, 2]), ag.constant([1.0, 2.0]) * 2.0

        f = wrap(ag.function(give, jit_compile=jit_compile))
        for _ in range(2):
            for result in f(torch.ones(1)):
                result.add_(1.0)
            assert captured.numpy().tolist() == [1.0, 1.0]
            assert variable.numpy().tolist() == [3.0, 4.0]
        assert f(torch.ones(1))[3].tolist() == [2.0, 4.0]

    @pytest.mark.parametrize("changed", [0, 1])
    def test_a_change_in_place_is_refused(self, changed):
        x = tracked(1.0, 2.0)
        y = product(x, x)
        with torch.no_grad():
            (x, y)[changed].add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_tensors_with_gaps(self):
        x = torch.arange(12.0).reshape(3, 4)
        torch.testing.assert_close(product(x.T, x.T[:, :]), x.T**2)
        torch.testing.assert_close(product(x[:, ::2], x[:, 1::2]), x[:, ::2] * x[:, 1::2])

    def test_dtypes(self):
        from autograph.interop import torch as ours

        for dtype in ours._DTYPES:
            x = torch.ones(2, dtype=dtype)
            y = wrap(lambda x: x)(x)
            assert y.dtype is dtype
            assert torch.equal(x, y)
        b = torch.tensor([1.5, 2.0], dtype=torch.bfloat16, requires_grad=True)
        product(b, b).sum().backward()
        assert b.grad.tolist() == [3.0, 4.0]


def test_autocast():
    x, layer = torch.randn(4, 3), torch.nn.Linear(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = layer(x)
        assert h.dtype is torch.bfloat16
        y = product(h, x)
        y.sum().backward()
        assert wrap(lambda a: a, cast_inputs=None)(h).dtype is torch.bfloat16
    assert y.dtype is torch.float32
    assert layer.weight.grad.dtype is torch.float32


def test_autocast_within_compile():
    layer = torch.nn.Linear(3, 3)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return product(layer(x), x)

    assert torch.compile(f, fullgraph=True, backend="aot_eager")(torch.ones(2, 3)).dtype is torch.float32


class Pair(NamedTuple):
    one: torch.Tensor
    other: torch.Tensor


def test_named_tuples_and_functions_without_arguments():
    found = wrap(lambda pair: Pair(pair.other, pair.one))(Pair(torch.ones(1), torch.zeros(1)))
    assert type(found) is Pair
    assert (found.one.item(), found.other.item()) == (0.0, 1.0)
    assert wrap(lambda: ag.constant([1.0, 2.0]))().tolist() == [1.0, 2.0]


def test_pytorchs_own_tools_take_it():
    x = tracked(1.0, 2.0)
    y = torch.utils.checkpoint.checkpoint(product, x, x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    hessian = torch.autograd.functional.hessian(lambda x: product(x, x * x).sum(), x)
    torch.testing.assert_close(hessian, torch.diag(6.0 * x))


def test_threads():
    f = wrap(lambda a: ag.reduce_sum(a * a * a))
    found = {}

    def work(number):
        for _ in range(20):
            x = torch.full((4,), float(number), requires_grad=True)
            f(x).backward()
            found.setdefault(number, set()).add(x.grad[0].item())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {3.0 * number**2} for number in range(4)}


def test_a_wrapper_may_go_before_the_backward_pass():
    x = tracked(3.0)
    y = wrap(lambda x: x * x)(x)
    (first,) = torch.autograd.grad(y, x, torch.ones(1, dtype=torch.float64), create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [2.0]


class Layer(ag.Module):
    def __init__(self, size, seed):
        super().__init__()
        self.weight = ag.Variable(ag.random.stateless_normal(size, seed=[seed, 0]))
        self.calls = ag.Variable(0.0, trainable=False)

    def __call__(self, x):
        self.calls.assign_add(1.0)
        return ag.tanh(x @ self.weight)


class Stack(ag.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Layer([3, 4], 0), Layer([4, 1], 1)]

    def __call__(self, x, scale=1.0):
        for layer in self.layers:
            x = layer(x)
        return {"y": x * scale}


class TestModule:
    def test_names_and_values(self):
        ours = Stack()
        module = ag.interop.torch.Module(ours)
        assert [name for name, _ in module.named_parameters()] == ["layers.0.weight", "layers.1.weight"]
        assert [name for name, _ in module.named_buffers()] == ["layers.0.calls", "layers.1.calls"]
        other = ag.interop.torch.Module(Stack())
        other.load_state_dict({name: 0 * value for name, value in module.state_dict().items()})
        assert other(torch.ones(2, 3))["y"].abs().sum().item() == 0.0

    def test_training_and_writing_back(self):
        ours = Stack()
        module, x = ag.interop.torch.Module(ours), torch.linspace(-1, 1, 12).reshape(4, 3)
        before = module(x)["y"]
        np.testing.assert_allclose(before.detach().numpy(), ours(ag.constant(x.numpy()))["y"], rtol=1e-5)
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = ((module(x, scale=2.0)["y"] - 0.3) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        assert module.state_dict()["layers.1.calls"].item() == 11.0
        assert float(ours.layers[1].calls) == 1.0
        module.update_variables()
        assert float(ours.layers[1].calls) == 11.0
        np.testing.assert_array_equal(ours.layers[0].weight.numpy(), module.layers.get_submodule("0").weight.detach())

    def test_compiled(self):
        module, x = ag.interop.torch.Module(Stack()), torch.ones(2, 3)
        torch.compile(module, fullgraph=True, backend="aot_eager")(x)["y"].sum().backward()
        compiled = [p.grad.clone() for p in module.parameters()]
        assert module.state_dict()["layers.0.calls"].item() == 1.0
        module.zero_grad()
        module(x)["y"].sum().backward()
        torch.testing.assert_close(compiled, [p.grad for p in module.parameters()])

    def test_refusals(self):
        with pytest.raises(ValueError, match="call it once"):
            ag.interop.torch.Module(ag.Module())

        class Changes(Layer):
            def __call__(self, x):
                self.weight.assign(self.weight + 1.0)
                return x

        with pytest.raises(ValueError, match="assigns the trainable variable weight"):
            ag.interop.torch.Module(Changes([1, 1], 0))(torch.ones(1))


def test_refusals():
    with pytest.raises(TypeError, match="dense tensors"):
        product(torch.eye(2).to_sparse(), torch.eye(2))
    with pytest.raises(TypeError, match="got an argument that is neither a tensor"):
        product(np.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="no dtype for a result of dtype string"):
        wrap(lambda x: ag.as_string(x))(torch.ones(2))
