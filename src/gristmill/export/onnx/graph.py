"""A graph under construction: values with the operators of arithmetic, constants that are stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

#: operators of the standard and of its extension for tables, as far back as they say all that is needed
OPSET, ML_OPSET, IR_VERSION = 18, 3, 8
#: right-hand sides that change nothing
_NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}
_OUTPUTS = ("label", "scores", "probabilities", "prediction", "intervals", "score_samples")


class Value:
    """A tensor of the graph; numbers and arrays that meet it become constants of its type."""

    __slots__ = ("dtype", "graph", "name")

    def __init__(self, graph: Graph, name: str, dtype: Any) -> None:
        self.graph, self.name, self.dtype = graph, name, np.dtype(dtype)

    def _with(self, op: str, other: Any, swap: bool = False, dtype: object = None) -> Value:
        if not isinstance(other, Value) and np.size(other) == 1 and not swap and other == _NEUTRAL.get(op):
            return self  # as onnxruntime would have it, which then finds other nodes side by side
        pair = [self, other if isinstance(other, Value) else self.graph.constant(other, self.dtype)]
        return self.graph.op(op, *(pair[::-1] if swap else pair), dtype=dtype or self.dtype)

    def __add__(self, other: object) -> Value:
        return self._with("Add", other)

    def __radd__(self, other: object) -> Value:
        return self._with("Add", other, swap=True)

    def __sub__(self, other: object) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: object) -> Value:
        return self._with("Sub", other, swap=True)

    def __mul__(self, other: object) -> Value:
        return self._with("Mul", other)

    def __rmul__(self, other: object) -> Value:
        return self._with("Mul", other, swap=True)

    def __truediv__(self, other: object) -> Value:
        return self._with("Div", other)

    def __rtruediv__(self, other: object) -> Value:
        return self._with("Div", other, swap=True)

    def __matmul__(self, other: object) -> Value:
        return self._with("MatMul", other)

    def __neg__(self) -> Value:
        return self.graph.op("Neg", self)

    def __ge__(self, other: object) -> Value:
        return self._with("GreaterOrEqual", other, dtype=np.bool_)

    def __gt__(self, other: object) -> Value:
        return self._with("Greater", other, dtype=np.bool_)

    def __le__(self, other: object) -> Value:
        return self._with("LessOrEqual", other, dtype=np.bool_)

    def at_least(self, other: object) -> Value:
        return self._with("Max", other)

    def at_most(self, other: object) -> Value:
        return self._with("Min", other)

    def cast(self, dtype: npt.DTypeLike) -> Value:
        if self.dtype == np.dtype(dtype):
            return self
        return self.graph.op("Cast", self, dtype=dtype, to=_onnx_type(dtype))

    def sum(self, axis: int = 1) -> Value:
        return self.graph.op("ReduceSum", self, self.graph.whole([axis]), keepdims=1)

    def largest(self, axis: int = 1) -> Value:
        return self.graph.op("ReduceMax", self, self.graph.whole([axis]), keepdims=1)

    def columns(self, places: list[int]) -> Value:
        """Some columns, in this order."""
        return self.graph.op("Gather", self, self.graph.whole(places), axis=1)

    def slice(self, start: int, stop: int) -> Value:
        """Columns from `start` to before `stop`."""
        whole = self.graph.whole
        return self.graph.op("Slice", self, whole([start]), whole([stop]), whole([1]))

    def flat(self) -> Value:
        """(events, 1) as (events,)."""
        return self.graph.op("Squeeze", self, self.graph.whole([1]))


def _onnx_type(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def input_name(column: str) -> str:
    """The input of a column: its name, unless that is none for ONNX, or an output or a value in between has it."""
    taken = column in ("", *_OUTPUTS) or column.startswith(("gm.", "column "))
    return f"column {column}" if taken else column


class Graph:
    """Nodes and constants; `number` is the type of what is computed."""

    def __init__(self, number: str) -> None:
        self.number = np.dtype(number)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.low: float | None = None  # the library's exponentials of a kernel are 0 below it
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._factors: dict[str, float] = {}  # constants of one number that single precision would change

    # ---- making values ---------------------------------------------------------------------------------------

    def input(self, name: str, dtype: object, shape: list[Any]) -> Value:
        from onnx import TensorProto, helper

        kind = TensorProto.STRING if dtype is str else _onnx_type(dtype)
        name = input_name(name)
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return Value(self, name, np.object_ if dtype is str else dtype)

    def output(self, name: str, value: Value, shape: list[Any]) -> None:
        from onnx import TensorProto, helper

        kind = TensorProto.STRING if value.dtype == np.object_ else _onnx_type(value.dtype)
        self.nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def constant(self, values: Any, dtype: Any = None) -> Value:
        from onnx import numpy_helper

        array = np.ascontiguousarray(np.asarray(values, dtype=dtype or self.number))
        array = array.reshape(np.shape(values))  # a lone number stays one
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = name = f"gm.c{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, name))
            with np.errstate(over="ignore"):
                if array.dtype == np.float64 and array.size == 1 and array.astype(np.float32) != array:
                    self._factors[name] = float(array.reshape(()))
        return Value(self, self._known[key], array.dtype)

    def whole(self, values: object) -> Value:
        return self.constant(values, np.int64)

    def strings(self, values: list[str]) -> Value:
        from onnx import TensorProto

        name = f"gm.c{len(self.constants)}"
        texts = [value.encode() for value in values]  # `helper.make_tensor` loses a null character at the end of one
        self.constants.append(
            TensorProto(name=name, data_type=TensorProto.STRING, dims=[len(values)], string_data=texts)
        )
        return Value(self, name, np.object_)

    def op(
        self, kind: str, *inputs: Value, dtype: object = None, domain: str = "", extra: int = 0, **attributes: Any
    ) -> Value:
        """The first output of a node; `extra`: how many more it has."""
        from onnx import helper

        name = f"gm.v{len(self.nodes)}"
        names = [value.name for value in inputs]
        outputs = [name, *(f"{name}_{at}" for at in range(extra))]
        self.nodes.append(helper.make_node(kind, names, outputs, name=name, domain=domain, **attributes))
        return Value(self, name, dtype or inputs[0].dtype)

    # ---- functions -------------------------------------------------------------------------------------------

    def where(self, condition: Value, yes: object, no: object) -> Value:
        kind = next(value.dtype for value in (yes, no) if isinstance(value, Value))
        pair = [value if isinstance(value, Value) else self.constant(value, kind) for value in (yes, no)]
        return self.op("Where", condition, *pair, dtype=kind)

    def exp(self, x: Value) -> Value:
        found = self.op("Exp", x)
        # Densities are measured by logarithms, and ties are ties of exact zeros.
        return found if self.low is None else self.where(x >= self._limit(self.low), found, 0.0)

    def _limit(self, low: float) -> float:
        return max(low, -87.0) if self.number == np.float32 else low

    def log(self, x: Value) -> Value:
        return self.op("Log", x)

    def abs(self, x: Value) -> Value:
        return self.op("Abs", x)

    def sqrt(self, x: Value) -> Value:
        return self.op("Sqrt", x)

    def clip(self, x: Value, low: float, high: float) -> Value:
        return x.at_least(low).at_most(high)

    def concat(self, *parts: Value) -> Value:
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def power(self, base: Value, degree: int) -> Value:
        """By squaring, as the library has it."""
        result: Value | None = None
        while degree > 0:
            if degree & 1:
                result = base if result is None else result * base
            degree >>= 1
            if degree:
                base = base * base
        assert result is not None
        return result

    def geometric(self, t: Value, terms: int) -> Value:
        """1 + t + ... + t^(terms - 1), in about log(terms) steps."""
        total, power, count = None, None, 0  # sum of `count` terms, and t^count
        for bit in bin(terms)[2:]:
            if total is not None and power is not None:
                total, power, count = total * (power + 1.0), power * power, 2 * count
            if bit == "1":
                total = t * 0.0 + 1.0 if total is None else total * t + 1.0
                power = t if power is None else power * t
                count += 1
        assert total is not None
        assert count == terms
        return total

    def sum_over_columns(self, x: Value, points: Any, width: int) -> Value:
        """sum_j |x_j - y_j| of rows and points, one column at a time: (events, points)."""
        from onnx import TensorProto, helper

        kind = TensorProto.DOUBLE if self.number == np.float64 else TensorProto.FLOAT
        apart = [
            helper.make_node("Sub", ["gm.column", "gm.coordinate"], ["gm.apart"]),
            helper.make_node("Abs", ["gm.apart"], ["gm.size"]),
            helper.make_node("Add", ["gm.sum", "gm.size"], ["gm.next"]),
        ]
        info = helper.make_tensor_value_info
        body = helper.make_graph(
            apart,
            "distance",
            [
                info("gm.sum", kind, ["N", len(points)]),
                info("gm.column", kind, ["N", 1]),
                info("gm.coordinate", kind, [1, len(points)]),
            ],
            [info("gm.next", kind, ["N", len(points)])],
        )
        columns = self.op("Unsqueeze", self.op("Transpose", x, perm=[1, 0]), self.whole([2]))
        coordinates = self.constant(np.asarray(points).T[:, None, :])
        start = x @ np.zeros((width, len(points)))
        return self.op("Scan", start, columns, coordinates, body=body, num_scan_inputs=2)

    # ---- the file --------------------------------------------------------------------------------------------

    def _separated(self) -> list[Any]:
        """The nodes, with lone factors as onnxruntime computes them in double.

        It fuses a factor beside a matrix product into the product and keeps it there in single precision: a negation on
        either side prevents that. It drops a factor that is 1 in single precision: x c becomes x + x (c - 1).
        """
        from onnx import helper

        products = [node for node in self.nodes if node.op_type == "MatMul"]
        ends = {name for node in products for name in [*node.input, *node.output]}
        nodes: list[Any] = []
        for node in self.nodes:
            factor = next((name for name in node.input if name in self._factors), None)
            if node.op_type not in ("Mul", "Div") or factor is None:
                nodes.append(node)
                continue
            before, after = f"{node.name}.before", f"{node.name}.after"
            (value,) = (name for name in node.input if name != factor)
            number = self._factors[factor]
            if abs(number - 1.0) < 1e-7 and (node.op_type == "Mul" or node.input[1] == factor):
                more = (number - 1.0) if node.op_type == "Mul" else (1.0 - number) / number
                nodes.append(helper.make_node("Mul", [value, self.constant(more).name], [after], name=after))
                nodes.append(helper.make_node("Add", [value, after], list(node.output), name=node.name))
                continue
            if ends.isdisjoint([*node.input, *node.output]):
                nodes.append(node)
                continue
            inputs = [name if name == factor else before for name in node.input]
            nodes.append(helper.make_node("Neg", [value], [before], name=before))
            nodes.append(helper.make_node(node.op_type, inputs, [after], name=after))
            nodes.append(helper.make_node("Neg", [after], list(node.output), name=node.name))
        return nodes

    def model(self, name: str, metadata: dict[str, str]) -> Any:
        from onnx import helper

        nodes = self._separated()
        used = {name for node in nodes for name in node.input}
        constants = [constant for constant in self.constants if constant.name in used]
        graph = helper.make_graph(nodes, name, self.inputs, self.outputs, constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="gristmill")
        helper.set_model_props(model, metadata)
        return model
