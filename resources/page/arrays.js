// Arrays of up to four axes, by the names of the Array API standard. An array is {shape, data}; a truth value is 1 or 0.
// Arguments can be numbers. This file contains no formula of the loss: those are recorded from the program that trains.

const array = (shape, data) => ({ shape, data });
const size = (shape) => shape.reduce((a, b) => a * b, 1);
const isNumber = (x) => typeof x === "number";
const full = (shape, value) => array(shape, new Float64Array(size(shape)).fill(value));
const maps = {};

// For each element of an array of the shape `to`, the place of the element of an array of the shape `from` that is broadcast to it.
function places(from, to) {
  const key = from + ">" + to;
  if (!maps[key]) {
    const found = new Int32Array(size(to)), left = to.length - from.length;
    for (let place = 0; place < found.length; place++) {
      let rest = place, at = 0, step = 1;
      for (let axis = to.length - 1; axis >= left; axis--) {
        const length = from[axis - left];
        if (length > 1) at += (rest % to[axis]) * step;
        step *= length;
        rest = Math.floor(rest / to[axis]);
      }
      found[place] = at;
    }
    maps[key] = found;
  }
  return maps[key];
}

function common(shapes) {
  const axes = Math.max.apply(null, shapes.map((shape) => shape.length)), found = [];
  for (let axis = 1; axis <= axes; axis++) {
    found.unshift(Math.max.apply(null, shapes.map((shape) => shape.length < axis ? 1 : shape[shape.length - axis])));
  }
  return found;
}

function broadcast_to(x, shape) {
  if (isNumber(x)) return full(shape, x);
  if (String(x.shape) === String(shape)) return x;
  const from = places(x.shape, shape), data = new Float64Array(from.length);
  for (let place = 0; place < data.length; place++) data[place] = x.data[from[place]];
  return array(shape, data);
}

function each(compute) {
  return (a, b, c) => {
    const given = [a, b, c].filter((x) => x !== undefined), shape = common(given.map((x) => isNumber(x) ? [] : x.shape));
    const [p, q, r] = given.map((x) => broadcast_to(x, shape).data), data = new Float64Array(size(shape));
    for (let place = 0; place < data.length; place++) data[place] = compute(p[place], q && q[place], r && r[place]);
    return array(shape, data);
  };
}

function over(start, combine) {
  return (x, axes) => {
    const shape = x.shape.map((length, axis) => axes.indexOf(axis) < 0 ? length : 1);
    const to = places(shape, x.shape), data = new Float64Array(size(shape)).fill(start);
    for (let place = 0; place < to.length; place++) data[to[place]] = combine(data[to[place]], x.data[place]);
    return array(shape, data);
  };
}

const reshape = (x, shape) => array(shape, x.data);
const add = each((a, b) => a + b), subtract = each((a, b) => a - b), multiply = each((a, b) => a * b);
const divide = each((a, b) => a / b), negative = each((a) => -a), pow = each((a, b) => b === 2 ? a * a : Math.pow(a, b));
const abs = each(Math.abs), exp = each(Math.exp), expm1 = each(Math.expm1), log = each(Math.log), log1p = each(Math.log1p), sqrt = each(Math.sqrt);
const maximum = each((a, b) => Math.max(a, b)), minimum = each((a, b) => Math.min(a, b));
const less = each((a, b) => a < b), less_equal = each((a, b) => a <= b), greater = each((a, b) => a > b);
const greater_equal = each((a, b) => a >= b), equal = each((a, b) => a === b), not_equal = each((a, b) => a !== b);
const logical_and = each((a, b) => a && b), logical_or = each((a, b) => a || b), logical_not = each((a) => !a);
const where = each((condition, a, b) => condition ? a : b);
const sum = over(0, (a, b) => a + b), max = over(-Infinity, Math.max), min = over(Infinity, Math.min);

function cumulative_sum(x) {
  const data = Float64Array.from(x.data), row = x.shape[x.shape.length - 1];
  for (let place = 0; place < data.length; place++) if (place % row) data[place] += data[place - 1];
  return array(x.shape, data);
}
