"""Each line marked `# error` must be reported, and no other."""

import autograph as ag


@ag.function
def scaled(x: ag.Tensor, factor: float) -> ag.Tensor:
    return x * factor


class Model(ag.Module):
    @ag.function
    def call(self, x: ag.Tensor) -> ag.Tensor:
        return x


x = ag.constant(1.0)
scaled(x)  # error
scaled(x, "two")  # error
scaled(x, 2.0, 3.0)  # error
scaled(x, facto=2.0)  # error
scaled(x, 2.0).missing  # error
Model().call(x, x)  # error
Model().call(3)  # error
ag.exp(None)  # error
ag.exp()  # error
ag.add(x)  # error
ag.reduce_sum(x, axes=0)  # error
ag.reduce_sum(object())  # error
x + None  # error
x.assing(2.0)  # error
ag.Variable(1.0).asign(2.0)  # error
number: int = x + 1  # error
