"use strict";
(() => {
  const evidence = JSON.parse(document.getElementById("evidence").textContent);
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const ENDS = [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1];

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const rounded = (value) => Math.round(value * 10) / 10;
  // As in the text of the page.
  function percent(share, rows = 0) {
    const size = 100 * share;
    if (rows >= 3000 && size >= 9.95 && size <= 99) return `${size.toFixed(1)}\u00a0%`;
    const text = size.toFixed((size > 0 && size < 9.95) || (size > 99 && size < 100) ? 1 : 0);
    if (size > 0 && size < 0.1) return "under\u00a00.1\u00a0%";
    return `${text === "100.0" ? "over\u00a099.9" : text}\u00a0%`;
  }
  const count = (rows) => rows.toLocaleString("en", { maximumFractionDigits: 1 });

  // Both axes end where the largest value fits, so that rare events fill the picture.
  function axisEnd(curves) {
    const largest = Math.max(0, ...curves.flat().map((bin) => Math.max(bin[0], bin[1])));
    return ENDS.find((end) => largest <= end) ?? 1;
  }

  function path(bins, x, y) {
    return bins.map((bin, i) => `${i ? "L" : "M"}${x(bin[0])} ${y(bin[1])}`).join("");
  }

  // A reliability diagram: predicted probability to the right, observed frequency upwards.
  function diagram(found, name) {
    const [left, top, size] = [48, 10, 300];
    const end = axisEnd([found.before, found.after]);
    const x = (share) => rounded(left + (size * Math.min(share, end)) / end);
    const y = (share) => rounded(top + size - (size * Math.min(share, end)) / end);
    const svg = element("svg", { viewBox: "0 0 360 356", role: "img", "aria-label": name });
    svg.append(element("rect", { class: "frame", x: left, y: top, width: size, height: size }));
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const share = part * end;
      if (part % 1) {
        svg.append(element("path", { class: "grid", d: `M${x(share)} ${top}v${size}M${left} ${y(share)}h${size}` }));
      }
      svg.append(element("text", { x: x(share), y: top + size + 17, "text-anchor": part === 1 ? "end" : "middle" }, percent(share)));
      svg.append(element("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share)));
    }
    svg.append(element("path", { class: "ideal", d: `M${x(0)} ${y(0)}L${x(end)} ${y(end)}` }));
    svg.append(element("text", { x: left + size / 2, y: top + size + 38, "text-anchor": "middle" }, "predicted probability"));
    svg.append(element("text", { class: "upwards", x: left + 8, y: top + 18 }, "observed frequency"));
    for (const kind of ["before", "after"]) {
      for (const [predicted, , low, high] of found[kind]) {
        svg.append(element("path", { class: `whisker ${kind}`, d: `M${x(predicted)} ${y(low)}V${y(high)}` }));
      }
      svg.append(element("path", { class: `line ${kind}`, d: path(found[kind], x, y) }));
    }
    for (const kind of ["before", "after"]) {
      for (const [predicted, observed, low, high, rows] of found[kind]) {
        const dot = element("circle", { class: kind, cx: x(predicted), cy: y(observed), r: 4.5 });
        const words = kind === "before" ? "uncalibrated" : "calibrated";
        dot.append(element("title", {}, `${words}: predicted ${percent(predicted)}, observed ${percent(observed)} (${percent(low)} to ${percent(high)}), ${count(rows)} rows`));
        svg.append(dot);
      }
    }
    return svg;
  }

  function miniature(found) {
    const end = axisEnd([found.before, found.after]);
    const x = (share) => rounded(2 + (76 * share) / end);
    const y = (share) => rounded(58 - (56 * share) / end);
    const svg = element("svg", { viewBox: "0 0 80 60", "aria-hidden": "true" });
    svg.append(element("path", { class: "ideal", d: "M2 58L78 2" }));
    for (const kind of ["before", "after"]) {
      svg.append(element("path", { class: `line ${kind}`, d: path(found[kind], x, y) }));
    }
    return svg;
  }

  // All rows, class by class.
  const classButtons = [...document.querySelectorAll("[data-class]")];

  function showClass(index) {
    const found = evidence.classes[index];
    byId("diagram").replaceChildren(diagram(found, `Reliability of ${found.class}`));
    if (byId("class-name")) byId("class-name").textContent = found.class;
    for (const button of classButtons) {
      button.setAttribute("aria-pressed", String(button.dataset.class === String(index)));
    }
  }

  for (const button of classButtons) {
    button.querySelector(".mini").append(miniature(evidence.classes[button.dataset.class]));
    button.addEventListener("click", () => showClass(button.dataset.class));
  }
  showClass(0);

  // The panel of one place: hovering shows it for the moment, choosing keeps it.
  const panel = byId("panel");
  let chosen = null;

  function show(id) {
    const found = evidence.places[id];
    if (panel.dataset.place === id) return;
    panel.dataset.place = id;
    const parts = found.conditions.length ? found.conditions : ["all rows"];
    byId("panel-title").replaceChildren(
      ...parts.flatMap((part, i) => {
        const chip = document.createElement("span");
        chip.className = "chip";
        chip.textContent = part;
        return i ? [" and ", chip] : [chip];
      }),
    );
    byId("panel-sentence").textContent = found.sentence;
    const isDrawn = found.before.length > 0;
    byId("panel-key").hidden = !isDrawn;
    byId("panel-diagram").replaceChildren(
      ...(isDrawn ? [diagram(found, `Reliability where ${parts.join(" and ")}: ${found.sentence}`)] : []),
    );
    byId("panel-numbers").replaceChildren(
      ...found.numbers.flatMap(([name, value]) => {
        const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
        [term.textContent, meaning.textContent] = [name, value];
        return [term, meaning];
      }),
    );
    byId("panel-formulas").textContent = found.formulas.join("\n");
    byId("panel-notes").textContent = found.notes.join(" ");
  }

  const holders = [...document.querySelectorAll("[data-place]")].filter((each) => each !== panel);

  function choose(id) {
    chosen = id;
    show(id);
    for (const holder of holders) {
      const isIt = holder.dataset.place === id;
      if (holder.getAttribute("role") === "treeitem") holder.setAttribute("aria-selected", String(isIt));
      else {
        holder.classList.toggle("chosen", isIt);
        holder.setAttribute("aria-pressed", String(isIt));
      }
    }
  }

  function open(id) {
    choose(id);
    panel.classList.add("open");
  }

  for (const holder of holders) {
    holder.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(holder.dataset.place));
    holder.addEventListener("pointerleave", () => chosen && show(chosen));
    if (holder.getAttribute("role") !== "treeitem") holder.addEventListener("click", () => open(holder.dataset.place));
  }
  byId("panel-close").addEventListener("click", () => panel.classList.remove("open"));
  document.addEventListener("keydown", (event) => event.key === "Escape" && panel.classList.remove("open"));

  // The lists of groups and regions.
  const places = [...document.querySelectorAll(".place")];
  for (const list of document.querySelectorAll(".places")) {
    list.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const shown = [...list.querySelectorAll(".place")].filter((each) => each.offsetParent !== null);
      const next = shown[shown.indexOf(document.activeElement) + step];
      if (!next) return;
      next.focus();
      choose(next.dataset.place);
    });
  }
  const list = byId("region-list");
  const all = byId("all-regions");
  if (all) {
    const words = all.textContent;
    const fold = (folded) => {
      list.classList.toggle("folded", folded);
      all.textContent = folded ? words : "Show fewer";
      all.setAttribute("aria-expanded", String(!folded));
    };
    all.hidden = false;
    fold(true);
    all.addEventListener("click", () => fold(!list.classList.contains("folded")));
  }

  // The values of an attribute.
  const MARKS = { track: "path", range: "path", observed: "path", after: "circle", before: "circle" };

  function picture([predicted, observed, low, high, calibrated]) {
    const x = (share) => rounded(4 + 112 * Math.min(share / evidence.end, 1));
    const svg = element("svg", { class: "picture", viewBox: "0 0 120 16", width: 120, height: 16, "aria-hidden": "true" });
    const drawn = {
      track: { d: "M4 8H116" },
      range: { d: `M${x(low)} 8H${x(high)}` },
      observed: { d: `M${x(observed)} 2V14` },
      after: { cx: x(calibrated), cy: 8, r: 3.2 },
      before: { cx: x(predicted), cy: 8, r: 3.6 },
    };
    for (const [kind, tag] of Object.entries(MARKS)) svg.append(element(tag, { class: kind, ...drawn[kind] }));
    return svg;
  }

  function cell(content, kind, tag = "td") {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(content);
    return made;
  }

  function showAttribute(lines) {
    byId("lines").replaceChildren(
      ...lines.map(([words, label, rows, share, ...numbers]) => {
        const [predicted, observed, low, high, calibrated] = numbers;
        const line = document.createElement("tr");
        // As in the tree: of few rows little can be said.
        if (rows < 50 || share < 0.01) line.className = "pale";
        const name = cell(words, "", "th");
        name.scope = "row";
        const show = (value) => percent(value, rows);
        const frequency = cell(`${show(observed)} `, "number");
        const range = document.createElement("span");
        range.className = "range";
        range.textContent = `(${show(low).replace("\u00a0%", "")}–${show(high)})`;
        frequency.append(range);
        line.append(name, ...(evidence.several ? [cell(label, "label")] : []));
        line.append(cell(count(rows), "number"), cell(show(predicted), "number"), frequency, cell(show(calibrated), "number"));
        line.append(cell(picture(numbers), "drawn"));
        return line;
      }),
    );
  }

  const select = byId("attribute");
  if (select) {
    byId("lookup-section").hidden = false;
    select.addEventListener("change", () => showAttribute(evidence.attributes[select.value]));
    showAttribute(evidence.attributes[0]);
  }

  // The tree.
  const tree = byId("tree-list");
  const items = tree ? [...tree.children] : [];
  const itemOf = new Map(items.map((item) => [item.dataset.place, item]));
  const parentOf = (item) => itemOf.get(item.dataset.parent);

  function refresh() {
    for (const item of items) {
      const parent = parentOf(item);
      item.hidden = Boolean(parent) && (parent.hidden || parent.getAttribute("aria-expanded") === "false");
    }
  }

  function setOpen(item, isOpen) {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(isOpen));
    refresh();
  }

  function goTo(item) {
    if (!item) return;
    for (const each of items) each.tabIndex = each === item ? 0 : -1;
    item.focus();
    choose(item.dataset.place);
  }

  tree?.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    const onCaret = event.target.closest(".caret");
    if (onCaret || item.getAttribute("aria-selected") === "true") {
      setOpen(item, item.getAttribute("aria-expanded") === "false");
    }
    goTo(item);
    if (!onCaret) open(item.dataset.place);
  });

  tree?.addEventListener("keydown", (event) => {
    const item = event.target.closest("[role=treeitem]");
    const shown = items.filter((each) => !each.hidden);
    const at = shown.indexOf(item);
    const expanded = item?.getAttribute("aria-expanded");
    const actions = {
      ArrowDown: () => goTo(shown[at + 1]),
      ArrowUp: () => goTo(shown[at - 1]),
      Home: () => goTo(shown[0]),
      End: () => goTo(shown[shown.length - 1]),
      ArrowRight: () => (expanded === "false" ? setOpen(item, true) : expanded && goTo(shown[at + 1])),
      ArrowLeft: () => (expanded === "true" ? setOpen(item, false) : goTo(parentOf(item))),
      Enter: () => open(item.dataset.place),
      " ": () => open(item.dataset.place),
    };
    const action = item && actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  for (const [id, isOpen] of [["open-all", true], ["close-all", false]]) {
    const button = byId(id);
    if (!button) continue;
    button.hidden = false;
    button.addEventListener("click", () => {
      for (const item of items) {
        if (item.hasAttribute("aria-expanded")) item.setAttribute("aria-expanded", String(isOpen || !item.dataset.parent));
      }
      refresh();
      goTo(items[0]);
    });
  }
  refresh();
  choose((byId("region-list")?.querySelector(".place") ?? places[0]).dataset.place);
})();
