"""Products: linear layers, convolutions and matrix products, of intervals by intervals.

Every product here is bilinear, ``w * x`` with a sum behind it. Weights lie in ``[W - D, W + U]`` and inputs in
``[c - b, c + a]``. The point's own product ``W * c`` is the model's own call, and every other term is non-negative.
:func:`~intervalnn.rules.products.split.split` makes of the second factor the weights of the products that bound it, in
a form that is a type, with its inequality:

=====================  ===========================================  ============================================
form                   what moves                                   products beside the point's own
=====================  ===========================================  ============================================
``InputsMove``         inputs                                       two, the sum and the difference of a pair
``WeightsMove``        weights, at inputs of any sign               two, likewise
``OneSided``           weights, at inputs that are never negative   two, stacked in one call
``OneGap``             weights with the same gap on both sides      one
``Sum``                both                                         those of either
``StretchedInputs``    weights by shares of their inputs, and       two
                       inputs
``Corners``            both, at the exact corners                   six, for inputs of any sign twelve
``SideBySide``         both, of a convolution compiled for a GPU    those of ``Sum``, in two calls
=====================  ===========================================  ============================================

The default is ``Sum``, and ``Corners`` for ``exact=True``. The two differ by gap times width. Inputs that stand side by
side several times, as nearest upsampling puts them, are taken once
(:class:`~intervalnn.rules.products.repeats.Repeats`).
"""

from intervalnn.rules.products import layers, matrices, trilinear

__all__ = ["layers", "matrices", "trilinear"]
