// Predicts with trees or a curve that caltree has saved, in browsers and in Node.
const LIMITS = [2 ** -53, 1 - 2 ** -53], FARTHEST = Math.log(2 ** 53 - 1);
const LARGEST = Number.MAX_VALUE, clip = (x, low, high) => Math.min(Math.max(x, low), high);
const finite = (s) => clip(s, -1e100, 1e100), logOdds = (p) => Math.log(p / (1 - p));
const clipped = ([low, high]) => (p) => logOdds(clip(p, low, high));
const logarithm = ([low]) => (p) => Math.log(Math.max(p, low));
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const divided = (values, by = sum(values)) => values.map((value) => value / by);
const softmax = (F, top = Math.max(...F)) => divided(F.map((f) => Math.exp(f - top)));
const oneAClass = (F) => (F.length > 1 ? F : [0, F[0]]); // a single one is the second of two
const byClassifier = (s, m) => s.flatMap((_, i) => (i % m === 0 ? [s.slice(i, i + m)] : []));
function average(scores, m, type) { // over the classifiers
  const parts = byClassifier(type === "probability" ? scores : scores.map(finite), m);
  return parts[0].map((_, j) => sum(parts.map((part) => part[j])) / parts.length);
}
function uncalibrated(scores, m, type) { // the scores as probabilities, one per class
  const mean = average(scores, m, type);
  if (type !== "probability") return softmax(oneAClass(mean));
  const whole = mean.length > 1 ? mean : [1 - mean[0], mean[0]], total = sum(whole);
  return total === 0 ? whole.fill(1 / m) : divided(whole, Math.abs(total - 1) > 1e-12 ? total : 1);
}
const bend = (z) => -Math.abs(z) - 2 * Math.log1p(Math.exp(-Math.abs(z)));
function regressors(scores, m, type, published, limits) { // the scores as node models see them
  const odds = logOddsOf(scores, m, type, published, limits);
  return published || m > 2 ? odds : [...odds, ...odds.map(bend)];
}
function logOddsOf(scores, m, type, published, limits) { // or margins, or logarithms
  if (type === "margin" || (type === "logit" && published)) return scores.map(finite);
  if (published) return scores.map((p) => logOdds(p === 0 ? 0.00001 : p === 1 ? 0.99999 : p));
  if (type === "logit" && scores.length === 1) return [clip(scores[0], -FARTHEST, FARTHEST)];
  const p = type === "logit" ? byClassifier(scores, m).flatMap((part) => softmax(part)) : scores;
  return m > 2 ? p.map(logarithm(limits)) : p.slice(p.length === 2 ? 1 : 0).map(clipped(limits));
}
function encoded(value, { categories, fill }) { // itself, a category's code, or NaN if missing
  const key = (each) => (typeof each === "string" ? each : Number(each));
  if (Number.isNaN(value ?? NaN) || categories?.length === 0) return NaN;
  const code = categories ? categories.map(key).indexOf(key(value)) : Number(value);
  return categories && code < 0 ? fill : code;
}
function oneClassifier(scores, m, type) { // one score a class, or that of the second of two
  const mean = average(scores, m, type), [first, second] = mean;
  return m > 2 || mean.length === 1 ? mean : [type === "probability" ? second : second - first];
}
function leaf({ format, classes, slope, slopes, intercepts }) { // a curve as a tree without splits
  const same = classes.length > 2 ? classes.map(() => [0, slope]) : [[0, slope, 0]];
  const F = format === "caltree.TemperatureScaling" ? same
    : format === "caltree.BetaScaling" ? intercepts.map((first, j) => [first, ...slopes[j]]) : null;
  const whole = { attributes: { columns: [] }, attribute: [-1], tree_weight: [1] };
  const lists = F && F.map((line) => line.map((number) => [number]));
  return F && { ...whole, step: F[0].map(() => 1), parameters: lists };
}
function place(nodes) { // depth first, children after their parents; returns the roots
  const roots = [];
  for (let end = 0; end < nodes.length;) {
    roots.push(nodes[end]);
    for (const pending = [nodes[end++]]; pending.length > 0;) {
      const node = pending.pop(), { cut, missing } = node;
      const count = Array.isArray(cut) ? 1 + Math.max(missing, ...cut) : node.attribute < 0 ? 0 : 2;
      node.children = nodes.slice(end, end += count);
      pending.push(...[...node.children].reverse());
    }
  }
  return roots;
}
function weigh(node, left) { // a leaf has what the weights above it leave of the tree's
  if (node.attribute < 0) node.weight = Math.round(left * 1e12) / 1e12;
  node.children.forEach((child) => weigh(child, left - node.weight));
}
function readTrees(part) { // the roots; a node has its children and its weight and model or value
  const { attribute, cuts, weight, tree_weight, step, value, parameters } = part;
  let splits = 0, leaves = 0; // so far
  const nodes = attribute.map((a) => {
    if (a < 0) return { attribute: a, value: value?.[leaves++] };
    const i = splits++, found = { attribute: a, cut: cuts[a][part.cut[i]] };
    return { ...found, missing: part.missing[i], weight: weight?.[i] };
  });
  const roots = place(nodes);
  if (value) return roots;
  roots.forEach((root, t) => weigh(root, tree_weight[t]));
  const [[{ length }]] = parameters;
  const modelled = length < nodes.length ? nodes.filter((node) => node.weight > 0) : nodes;
  modelled.forEach((node, i) => {
    node.lines = parameters.map((line) => line.map((list, k) => list[i] * step[k]));
  });
  return roots;
}
export function load(stored) {
  const { format, version, classes, score_type: type, n_scores, pos_label } = stored;
  const model = stored.model ?? leaf(stored), limits = stored.score_limits ?? LIMITS;
  if (version !== 2 || !model) throw new Error("this is no tree, forest or curve of version 2");
  const { columns } = model.attributes, { forest, boosted } = model;
  const m = classes.length, published = format === "caltree.PublishedCalibrationTree";
  const parts = (forest ? [forest, boosted] : [model]).map((part) => [part, readTrees(part)]);
  const whole = type === "probability" ? 1 : 0; // the score of the other of two classes is the rest
  function way(node, values) { // the nodes from here to a leaf
    const { attribute, cut, missing, children } = node, value = values[attribute];
    if (attribute < 0) return [node];
    const known = Array.isArray(cut) ? cut[value] : Number(value > cut && cut < LARGEST);
    return [node, ...way(children[Number.isNaN(value) ? missing : known], values)];
  }
  return { classes, predictProba(row, given) {
    if (given.length !== n_scores) throw new Error(`give ${n_scores} scores, as in training`);
    const scores = pos_label === classes[0] ? given.map((s) => whole - s) : given;
    const seen = stored.model ? scores : oneClassifier(scores, m, type);
    const raw = uncalibrated(scores, m, type), x = regressors(seen, m, type, published, limits);
    const odds = m > 2 ? raw.map(logarithm(limits)) : [0, clipped(limits)(raw[1])]; // uncalibrated
    const known = columns.map((c, i) => encoded(Array.isArray(row) ? row[i] : row[c.name], c));
    const score = (j, k, n) => (n === x.length ? x[k] : x[k * m + j]); // all, or those of class j
    const line = ([first, ...slopes], j) => slopes.reduce(
      (F, slope, k, { length }) => F + slope * score(j, k, length), first);
    function said([part, roots]) { // weights, and probabilities of all classes
      const ways = roots.map((root) => way(root, [...known, ...x]));
      const { parameters, start, state, value, offset } = part, first = m > 2 ? 0 : 1;
      const F = (lines) => oneAClass(lines.map(line)).map((f, j) => (offset ? f + odds[j] : f));
      const counting = ways.flat().filter((node) => node.weight > 0);
      if (!value) return counting.map(({ weight, lines }) => [weight, softmax(F(lines))]);
      const curve = F(parameters), boosted = curve.map((f) => start * f);
      ways.forEach((nodes, t) => { boosted[first + state[t]] += nodes.at(-1).value; });
      return [[part.curve_weight, softmax(curve)], [part.boosted_weight, softmax(boosted)]];
    }
    const all = parts.flatMap(said), together = (j) => sum(all.map(([w, p]) => w * p[j]));
    const rest = 1 - sum(all.map(([w]) => w));
    return raw.map((p, j) => clip(together(j) + (rest > 1e-9 ? rest * p : 0), 0, 1));
  } };
}
