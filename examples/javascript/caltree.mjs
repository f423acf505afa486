// Predicts with trees or a curve that caltree has saved, in browsers and in Node.
const SMALLEST = 2 ** -53, FARTHEST = Math.log(2 ** 53 - 1), LARGEST = Number.MAX_VALUE;
const clip = (x, low, high) => Math.min(Math.max(x, low), high);
const finite = (s) => clip(s, -1e100, 1e100), logOdds = (p) => Math.log(p / (1 - p));
const clippedLogOdds = (p) => logOdds(clip(p, SMALLEST, 1 - SMALLEST));
const logarithm = (p) => Math.log(Math.max(p, SMALLEST));
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const divided = (values, by = sum(values)) => values.map((value) => value / by);
const softmax = (F, top = Math.max(...F)) => divided(F.map((f) => Math.exp(f - top)));
const oneAClass = (F) => (F.length > 1 ? F : [0, F[0]]); // a single one is the second of two
const byClassifier = (s, m) => s.flatMap((_, i) => (i % m === 0 ? [s.slice(i, i + m)] : []));
function average(scores, m, type) { // over the classifiers
  const parts = byClassifier(type === "probability" ? scores : scores.map(finite), m);
  return parts[0].map((_, j) => sum(parts.map((part) => part[j])) / parts.length);
}
function uncalibrated(scores, m, type) { // the scores as probabilities, one a class
  const mean = average(scores, m, type);
  if (type !== "probability") return softmax(oneAClass(mean));
  const whole = mean.length > 1 ? mean : [1 - mean[0], mean[0]], total = sum(whole);
  return total === 0 ? whole.fill(1 / m) : divided(whole, Math.abs(total - 1) > 1e-12 ? total : 1);
}
const bend = (z) => -Math.abs(z) - 2 * Math.log1p(Math.exp(-Math.abs(z)));
function regressors(scores, m, type, published) { // the scores as the node models see them
  const odds = logOddsOf(scores, m, type, published);
  return published || m > 2 ? odds : [...odds, ...odds.map(bend)];
}
function logOddsOf(scores, m, type, published) { // or margins, or logarithms of more classes
  if (type === "margin" || (type === "logit" && published)) return scores.map(finite);
  if (published) return scores.map((p) => logOdds(p === 0 ? 0.00001 : p === 1 ? 0.99999 : p));
  if (type === "logit" && scores.length === 1) return [clip(scores[0], -FARTHEST, FARTHEST)];
  const p = type === "logit" ? byClassifier(scores, m).flatMap((part) => softmax(part)) : scores;
  return m > 2 ? p.map(logarithm) : p.slice(p.length === 2 ? 1 : 0).map(clippedLogOdds);
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
  const whole = { attributes: { columns: [] }, attribute: [-1], roots: [0], weight: [1] };
  return F && { ...whole, parameters: [F] };
}
export function load(stored) {
  const { format, version, classes, score_type: type, n_scores, pos_label } = stored;
  const model = stored.model ?? leaf(stored);
  if (version !== 1 || !model) throw new Error("this is no tree, forest or curve of version 1");
  const { columns } = model.attributes, { forest, boosted } = model;
  const parts = forest ? [forest, boosted] : [model], m = classes.length;
  const published = format === "caltree.PublishedCalibrationTree";
  const whole = type === "probability" ? 1 : 0; // the score of the other of two classes is the rest
  function way(part, node, values) { // the nodes from here to a leaf
    const attribute = part.attribute[node], value = values[attribute], { table, branches } = part;
    if (attribute < 0) return [node];
    const cut = part.threshold[node], isNominal = columns[attribute]?.categories;
    const known = isNominal ? branches[table[node] + value] : Number(value > cut && cut < LARGEST);
    const branch = Number.isNaN(value) ? part.missing[node] : known;
    return [node, ...way(part, part.first_child[node] + branch, values)];
  }
  return { classes, predictProba(row, given) {
    if (given.length !== n_scores) throw new Error(`give ${n_scores} scores, as in training`);
    const scores = pos_label === classes[0] ? given.map((s) => whole - s) : given;
    const seen = stored.model ? scores : oneClassifier(scores, m, type);
    const raw = uncalibrated(scores, m, type), x = regressors(seen, m, type, published);
    const odds = m > 2 ? raw.map(logarithm) : [0, clippedLogOdds(raw[1])]; // uncalibrated
    const known = columns.map((c, i) => encoded(Array.isArray(row) ? row[i] : row[c.name], c));
    const score = (j, k, n) => (n === x.length ? x[k] : x[k * m + j]); // all, or those of class j
    const line = ([first, ...slopes], j) => slopes.reduce(
      (F, slope, k, { length }) => F + slope * score(j, k, length), first);
    function said(part) { // weights, and probabilities of all classes
      const ways = part.roots.map((root) => way(part, root, [...known, ...x]));
      const { parameters, weight, start, state, value, offset } = part, first = m > 2 ? 0 : 1;
      const F = (lines) => oneAClass(lines.map(line)).map((f, j) => (offset ? f + odds[j] : f));
      if (!value) return ways.flat().map((v) => [weight[v], softmax(F(parameters[v]))]);
      const curve = F(parameters), boosted = curve.map((f) => start * f);
      ways.forEach((nodes, t) => { boosted[first + state[t]] += value[nodes.at(-1)]; });
      return [[part.curve_weight, softmax(curve)], [part.boosted_weight, softmax(boosted)]];
    }
    const all = parts.flatMap(said), together = (j) => sum(all.map(([w, p]) => w * p[j]));
    const rest = 1 - sum(all.map(([w]) => w));
    return raw.map((p, j) => clip(together(j) + (rest > 1e-9 ? rest * p : 0), 0, 1));
  } };
}
