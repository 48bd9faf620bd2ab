"use strict";

// Verdicts from the most harmless one to the worst; a place of the grid has the colour of its worst.
const KINDS = ["no variant", "equal", "limited", "stale", "unexpected"];
const CLASSES = ["none", "equal", "limited", "stale", "unexpected"];
const MEANINGS = [
  "JAX itself cannot", "equal to JAX", "expected failure", "unexpected pass: a limitation is out of date",
  "unexpected failure",
];
// What people read in place of the words of the data.
const WORDS = {
  limited: "expected failure", stale: "unexpected pass", unexpected: "unexpected failure",
  "no variant": "JAX itself cannot",
};
const word = (name) => WORDS[name] || name;
// What a place of a cell consists of, in the order in which the data have it.
const PLACE = ["version", "mode", "target", "device", "variant"];
const TITLES = {
  version: "Versions", mode: "Mode", target: "Target", device: "Device", variant: "Variant",
  dtype: "Dtype", verdict: "Verdict", outcome: "Outcome",
};
const MOST = 200; // The number of items of a list that are shown before one asks for more.

const $ = (id) => document.getElementById(id);
const number = (n) => n.toLocaleString("en-US");
const count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

/** What an object has under a name; not what all objects have, such as "constructor". */
const of = (object, name) => (Object.hasOwn(object, name) ? object[name] : []);

/** An element with attributes and children; text is never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Whose results there are, by the modes of the cells: an exported model has the mode "runtime". */
const whose = (modes) => {
  if (!modes.has("runtime")) return "TensorFlow’s";
  return modes.size > 1 ? "all" : "LiteRT’s, ONNX Runtime’s and TF.js’s";
};

/** The data of the page, which are compressed JSON. */
async function unpack() {
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The columns of all cells, and what each harness, place and result is. */
function tabulate(data) {
  const { cells } = data;
  const count = cells.place.length;
  let last = 0;
  return {
    ...data,
    count,
    harness: Int32Array.from(cells.harness, (step) => (last += step)),
    place: Int32Array.from(cells.place),
    result: Int32Array.from(cells.result),
    limitation: Int32Array.from(cells.limitation),
    message: Int32Array.from(cells.message),
    seconds: Float64Array.from(cells.seconds, (ms) => ms / 1000),
    ulps: Float64Array.from(cells.ulps, (u) => (u === null ? NaN : u < 0 ? Infinity : u)),
    primitiveOf: Int32Array.from(data.harnesses, (h) => h[0]),
    dtypeOf: Int32Array.from(data.harnesses, (h) => h[2]),
    kindOf: data.results.map(([, verdict]) => Math.max(KINDS.indexOf(verdict), 0)),
    names: data.harnesses.map((h) => `${data.primitives[h[0]]}_${h[1]}`),
  };
}

class Explorer {
  constructor(data) {
    this.data = tabulate(data);
    this.state = {};
    this.texts = {
      harness: this.data.names.map((t) => t.toLowerCase()),
      limitation: data.limitations.map((t) => t.toLowerCase()),
      message: data.messages.map((t) => t.toLowerCase()),
    };
    this.filters = this.makeFilters();
    this.title = `lowering: ${whose(this.known.mode)} results`;
    $("home").textContent = this.title;
    this.makeGrid();
    this.listen();
    $("more").open = window.innerWidth > 600;
    $("sweeps").textContent = `Run with ${data.sweeps.map(withDates).join("; ")}.`;
    const found = new Set(this.data.kindOf);
    $("legend").append(...CLASSES.map((name, kind) =>
      make("li", { hidden: !found.has(kind) },
        make("span", { class: name }, kind > 1 ? "1/9" : kind ? "9" : "–"), MEANINGS[kind])));
    this.readAddress();
  }

  /** A list to choose from for each filter that has a choice. */
  makeFilters() {
    const { data } = this;
    const choices = {
      ...Object.fromEntries(PLACE.map((name, i) => [name, [
        ...new Set(data.places.map((p) => (i ? p[i] : data.versions[p[0]]))),
      ]])),
      dtype: data.dtypes,
      verdict: [...new Set(data.results.map((r) => r[1]))],
      outcome: [...new Set(data.results.map((r) => r[0]))],
    };
    const lists = {};
    this.known = Object.fromEntries(Object.entries(choices).map(([name, v]) => [name, new Set(v)]));
    for (const [name, values] of Object.entries(choices)) {
      if (name !== "version" && name !== "dtype") values.sort();
      const list = make("select", { id: name }, make("option", { value: "" }, "all"),
        ...values.map((value) => make("option", { value }, word(value))));
      // What has no choice is not shown, but an address may still name it.
      $("selects").append(make("label", { hidden: values.length < 2 || undefined }, TITLES[name], list));
      lists[name] = list;
    }
    return lists;
  }

  makeGrid() {
    const { primitives, dtypes } = this.data;
    const grid = $("grid");
    grid.style.setProperty("--dtypes", dtypes.length);
    const cell = (tag, role, ...children) => make(tag, { role }, ...children);
    grid.tHead.append(make("tr", { role: "row" }, cell("th", "columnheader", "primitive"),
      ...dtypes.map((dtype) => cell("th", "columnheader", dtype))));
    this.places = [];
    this.rows = primitives.map((primitive, p) => {
      const link = make("a", { href: `#${new URLSearchParams({ primitive })}`, title: primitive, tabindex: -1 }, primitive);
      const row = make("tr", { role: "row" }, make("th", { role: "rowheader" }, link));
      for (let d = 0; d < dtypes.length; d++) {
        const place = cell("td", "gridcell");
        place.at = p * dtypes.length + d;
        place.tabIndex = -1;
        this.places.push(place);
        row.append(place);
      }
      return row;
    });
    // The worst of each primitive decides its place, whatever the filters.
    const worst = new Int8Array(primitives.length);
    for (let i = 0; i < this.data.count; i++) {
      const p = this.data.primitiveOf[this.data.harness[i]];
      worst[p] = Math.max(worst[p], this.data.kindOf[this.data.result[i]]);
    }
    const order = primitives.map((_, p) => p).sort((a, b) =>
      Math.max(worst[b], 1) - Math.max(worst[a], 1) || a - b);
    this.rank = new Int32Array(primitives.length);
    order.forEach((p, rank) => { this.rank[p] = rank; });
    grid.tBodies[0].append(...order.map((p) => this.rows[p]));
    this.current = 0;
    this.setCurrent(order[0] * dtypes.length);
  }

  /** The primitives that the filters let through, in the order of the rows. */
  shown() {
    return [...this.seen].sort((a, b) => this.rank[a] - this.rank[b]);
  }

  listen() {
    const form = $("filters");
    form.addEventListener("input", () => this.readControls());
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      this.show(this.state.primitive ? { primitive: this.state.primitive } : {});
      $("search").focus();
    });
    window.addEventListener("hashchange", () => this.readAddress());
    const body = $("grid").tBodies[0];
    body.addEventListener("click", (event) => {
      const place = event.target.closest("td");
      const link = event.target.closest("a");
      if (place && !place.classList.contains("blank")) this.open(place.at);
      if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        this.goto({ ...this.state, primitive: link.textContent });
      }
    });
    body.addEventListener("focusin", (event) => {
      if (event.target.at !== undefined) this.setCurrent(event.target.at);
    });
    body.addEventListener("mouseover", (event) => {
      if (event.target.at !== undefined) event.target.title = this.describe(event.target.at);
    });
    body.addEventListener("keydown", (event) => this.move(event));
    document.addEventListener("keydown", (event) => {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === "/" && !isTyping) {
        event.preventDefault();
        $("search").focus();
      } else if (event.key === "Escape" && this.state.primitive && !isTyping) {
        this.goto({ ...this.state, primitive: undefined });
      }
    });
    $("home").addEventListener("click", (event) => {
      event.preventDefault();
      this.goto({});
    });
  }

  /** Takes the state from the address, so that addresses can be shared and one can go back. */
  readAddress() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    this.update(Object.fromEntries(parameters));
  }

  readControls() {
    const state = { primitive: this.state.primitive, search: $("search").value };
    for (const [name, list] of Object.entries(this.filters)) state[name] = list.value;
    this.show(state);
  }

  address(state) {
    const set = Object.entries(state).filter(([, value]) => value);
    return `#${new URLSearchParams(set)}`;
  }

  /** Shows a state under the same entry of the history. */
  show(state) {
    history.replaceState(null, "", this.address(state));
    this.update(state);
  }

  /** Shows a state under a new entry of the history. */
  goto(state) {
    history.pushState(null, "", this.address(state));
    this.update(state);
  }

  /** Opens the primitive of a place, with its dtype if there are cells of it. */
  open(at) {
    const { primitives, dtypes } = this.data;
    const primitive = primitives[Math.floor(at / dtypes.length)];
    const dtype = this.worst[at] < 0 ? this.state.dtype : dtypes[at % dtypes.length];
    this.goto({ ...this.state, primitive, dtype });
  }

  update(state) {
    const before = this.state;
    if (!before.primitive) this.scrolled = $("scroll").scrollTop;
    this.state = state;
    if ($("search").value !== (state.search || "")) $("search").value = state.search || "";
    for (const [name, list] of Object.entries(this.filters)) this.choose(list, state[name] || "");
    this.notice(state);
    const primitive = this.data.primitives.indexOf(state.primitive);
    const isPage = primitive >= 0;
    this.select(isPage ? primitive : -1);
    $("scroll").hidden = isPage;
    $("legend").hidden = isPage;
    $("page").hidden = !isPage;
    if (isPage) {
      this.showPrimitive(primitive);
      document.title = `${state.primitive} · ${this.title}`;
      if (before.primitive !== state.primitive) {
        window.scrollTo(0, 0);
        $("page").focus({ preventScroll: true });
      }
    } else {
      this.showGrid();
      document.title = this.title;
      if (before.primitive) {
        $("scroll").scrollTop = this.scrolled || 0;
        this.places[this.current].focus({ preventScroll: true });
      }
    }
    this.showCounts();
  }

  /** Says which names in the address these results do not have. */
  notice(state) {
    const said = [];
    for (const [name, value] of Object.entries(state)) {
      if (!value || name === "search") continue;
      if (name === "primitive") {
        if (!this.data.primitives.includes(value)) said.push(`no primitive “${value}”`);
      } else if (!Object.hasOwn(this.filters, name)) {
        said.push(`no filter “${name}”`);
      } else if (!this.known[name].has(value)) {
        said.push(`no cell with the ${TITLES[name].toLowerCase()} “${value}”`);
      }
    }
    $("notice").hidden = !said.length;
    $("notice").textContent = said.length ? `These results have ${said.join(", and ")}.` : "";
    if (Object.keys(this.filters).some((name) => state[name])) $("more").open = true;
  }

  /** Chooses a value of a filter; one from an address that no cell has becomes a choice, too. */
  choose(list, value) {
    list.value = value;
    if (list.value !== value) {
      list.append(make("option", { value }, value));
      list.value = value;
      list.parentElement.hidden = false;
    }
  }

  /** Chooses the cells that the filters let through, and counts them. */
  select(only) {
    const { data, state } = this;
    const width = data.dtypes.length;
    const size = data.primitives.length * width;
    const placeOk = data.places.map((place) => PLACE.every((name, i) =>
      !state[name] || state[name] === (i ? place[i] : data.versions[place[0]])));
    const resultOk = data.results.map(([outcome, verdict]) =>
      (!state.outcome || state.outcome === outcome) && (!state.verdict || state.verdict === verdict));
    const dtypeOk = data.dtypes.map((dtype) => !state.dtype || state.dtype === dtype);
    // Each word has a bit; a cell needs all of them, in its harness, limitation or message.
    const words = (state.search || "").toLowerCase().split(/\s+/).filter(Boolean).slice(0, 30);
    const bits = (texts) => Int32Array.from(texts, (text) =>
      words.reduce((sum, word, i) => (text.includes(word) ? sum | (1 << i) : sum), 0));
    const all = words.length ? (2 ** words.length - 1) | 0 : 0;
    const [inHarness, inLimitation, inMessage] = words.length
      ? [bits(this.texts.harness), bits(this.texts.limitation), bits(this.texts.message)] : [];
    this.worst = new Int8Array(size).fill(-1);
    this.total = new Int32Array(size);
    this.bad = new Int32Array(size);
    this.counts = new Array(KINDS.length).fill(0);
    this.chosen = [];
    const seen = new Set();
    for (let i = 0; i < data.count; i++) {
      const harness = data.harness[i];
      const primitive = data.primitiveOf[harness];
      const dtype = data.dtypeOf[harness];
      if (only >= 0 && primitive !== only) continue;
      if (!placeOk[data.place[i]] || !resultOk[data.result[i]] || !dtypeOk[dtype]) continue;
      if (all && (inHarness[harness] | inLimitation[data.limitation[i]] | inMessage[data.message[i]]) !== all) continue;
      const kind = data.kindOf[data.result[i]];
      const at = primitive * width + dtype;
      if (kind > this.worst[at]) this.worst[at] = kind;
      this.counts[kind]++;
      if (kind) this.total[at]++;
      if (kind > 1) this.bad[at]++;
      seen.add(primitive);
      if (only >= 0) this.chosen.push(i);
    }
    this.seen = seen;
  }

  showCounts() {
    const { counts, seen } = this;
    const cells = counts.reduce((a, b) => a + b, 0) - counts[0];
    const parts = [1, 4, 3, 2].filter((i) => counts[i] || i === 1)
      .map((i) => (i === 1 ? `${number(counts[1])} equal to JAX` : count(counts[i], word(KINDS[i]))));
    const primitives = this.state.primitive ? "" : ` of ${count(seen.size, "primitive")}`;
    const none = counts[0] ? `; JAX itself cannot make ${number(counts[0])} more` : "";
    $("counts").textContent =
      `${count(cells, "cell")}${primitives}: ${parts.join(", ")}${none}`;
  }

  showGrid() {
    const width = this.data.dtypes.length;
    this.columns = this.data.dtypes.map((_, d) => d).filter((d) =>
      this.rows.some((_, p) => this.worst[p * width + d] >= 0));
    this.hideOthers(this.columns);
    this.rows.forEach((row, p) => {
      const isHidden = !this.seen.has(p);
      if (row.hidden !== isHidden) row.hidden = isHidden;
      if (isHidden) return;
      for (let at = p * width; at < (p + 1) * width; at++) {
        const place = this.places[at];
        const kind = this.worst[at];
        const name = kind < 0 ? "blank" : CLASSES[kind];
        const text = kind < 0 ? "" : kind === 0 ? "–" : kind === 1 ? `${this.total[at]}` : `${this.bad[at]}/${this.total[at]}`;
        if (place.className !== name) place.className = name;
        if (place.textContent !== text) place.textContent = text;
      }
    });
    const [first] = this.shown();
    const isShown = this.seen.has(Math.floor(this.current / width)) && this.columns.includes(this.current % width);
    if (!isShown && first !== undefined) this.setCurrent(first * width + this.columns[0]);
  }

  /** Hides the columns of dtypes that no chosen cell has. */
  hideOthers(columns) {
    $("grid").style.setProperty("--dtypes", columns.length);
    const hidden = this.data.dtypes.map((_, d) => d).filter((d) => !columns.includes(d));
    const rules = hidden.map((d) => `#grid tr > :nth-child(${d + 2})`).join(",");
    const text = rules ? `${rules} { display: none; }` : "";
    if ($("columns").textContent !== text) $("columns").textContent = text;
  }

  /** Makes a place of the grid the one that the tabulator key reaches. */
  setCurrent(at) {
    this.places[this.current].tabIndex = -1;
    this.current = at;
    this.places[at].tabIndex = 0;
  }

  describe(at) {
    const { primitives, dtypes } = this.data;
    const place = `${primitives[Math.floor(at / dtypes.length)]} ${dtypes[at % dtypes.length]}`;
    if (this.worst[at] < 0) return `${place}: no cells`;
    return `${place}: ${count(this.total[at], "cell")}, ${this.bad[at]} not equal (${MEANINGS[this.worst[at]]})`;
  }

  move(event) {
    const at = event.target.at;
    if (at === undefined) return;
    const width = this.data.dtypes.length;
    const shown = this.shown();
    let row = shown.indexOf(Math.floor(at / width));
    let column = this.columns.indexOf(at % width);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.open(at);
      return;
    }
    const steps = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-20, 0], PageDown: [20, 0], Home: [0, -width], End: [0, width],
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    row = Math.min(Math.max(row + steps[event.key][0], 0), shown.length - 1);
    column = Math.min(Math.max(column + steps[event.key][1], 0), this.columns.length - 1);
    const next = this.places[shown[row] * width + this.columns[column]];
    next.focus();
    // The header and the first column must not cover it.
    const box = next.getBoundingClientRect();
    const scroll = $("scroll");
    const left = this.rows[shown[row]].firstChild.getBoundingClientRect().right;
    const top = $("grid").tHead.getBoundingClientRect().bottom;
    if (box.left < left) scroll.scrollLeft -= left - box.left;
    if (box.top < top) scroll.scrollTop -= top - box.top;
  }

  showPrimitive(primitive) {
    const { data, state } = this;
    const name = data.primitives[primitive];
    const back = make("a", { href: this.address({ ...state, primitive: "" }), id: "back" }, "← all primitives");
    back.addEventListener("click", (event) => {
      event.preventDefault();
      this.goto({ ...state, primitive: undefined });
    });
    const page = $("page");
    page.replaceChildren(
      make("p", {}, back),
      make("h2", {}, name),
      this.errors(),
      this.limitations(name),
      make("div", { class: "tables" },
        this.summary("By target and mode", (i) => {
          const [, mode, target, device] = data.places[data.place[i]];
          return `${target} ${mode}${device === "cpu" ? "" : ` ${device}`}`;
        }),
        this.summary("By dtype", (i) => data.dtypes[data.dtypeOf[data.harness[i]]]),
        data.versions.length > 1 ? this.summary("By versions", (i) => data.versions[data.places[data.place[i]][0]]) : ""),
      this.harnesses(),
      this.rules(name),
    );
  }

  /** A table of the chosen cells, by groups that a function of a cell names. */
  summary(title, groupOf) {
    const groups = new Map();
    for (const i of this.chosen) {
      const group = groupOf(i);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(i);
    }
    const rows = [...groups].map(([group, cells]) => {
      const figures = this.figures(cells);
      return make("tr", {}, make("th", { scope: "row" }, group),
        ...[figures.cells, figures.counts[1], figures.counts[2], figures.counts[4] + figures.counts[3]].map((n) => make("td", {}, number(n))),
        make("td", {}, inUlps(figures.ulps)), make("td", {}, inSeconds(figures.seconds)));
    });
    const titles = ["", "cells", "equal", "expected failures", "unexpected", "worst error, ULPs", "time"];
    const table = make("table", { class: "plain" },
      make("thead", {}, make("tr", {}, ...titles.map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, ...rows));
    return make("section", {}, make("h3", {}, title), make("div", { class: "scrolls" }, table));
  }

  figures(cells) {
    const { data } = this;
    const counts = new Array(KINDS.length).fill(0);
    let ulps = NaN;
    let seconds = 0;
    for (const i of cells) {
      counts[data.kindOf[data.result[i]]]++;
      if (!(data.ulps[i] <= ulps) && !Number.isNaN(data.ulps[i])) ulps = data.ulps[i];
      seconds += data.seconds[i];
    }
    return { counts, ulps, seconds, cells: cells.length - counts[0] };
  }

  limitations(name) {
    const { data } = this;
    const cells = new Map();
    for (const i of this.chosen) {
      const reason = data.limitations[data.limitation[i]];
      if (reason) cells.set(reason, (cells.get(reason) || 0) + 1);
    }
    const stated = of(data.stated, name);
    const known = new Set(stated.map((limitation) => limitation.reason));
    const others = [...cells.keys()].filter((reason) => !known.has(reason)).map((reason) => ({ reason }));
    const items = [...stated, ...others].map(({ reason, where, expected }) => make("li", {}, reason, make("div", { class: "quiet" },
      [where, expected, count(cells.get(reason) || 0, "cell")].filter(Boolean).join(" · "))));
    return section("Limitations: what is known to fail, and why", items.length ? make("ul", { class: "items" }, ...items) : quiet("There are none."));
  }

  errors() {
    const { data } = this;
    const groups = new Map();
    for (const i of this.chosen) {
      const kind = data.kindOf[data.result[i]];
      if (kind < 2) continue;
      const key = `${data.result[i]} ${data.message[i]}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(i);
    }
    const sorted = [...groups.values()].sort((a, b) => data.kindOf[data.result[b[0]]] - data.kindOf[data.result[a[0]]]);
    const item = (cells) => make("li", {}, this.tag(cells[0]), ` ${this.cellName(cells[0])}`,
      cells.length > 1 ? ` and ${number(cells.length - 1)} more` : "",
      make("div", { class: "message" }, data.messages[data.message[cells[0]]]));
    return section("Errors and differences", sorted.length
      ? long("ul", sorted, item) : quiet("All of these cells are equal to JAX."));
  }

  harnesses() {
    const { data } = this;
    const groups = new Map();
    for (const i of this.chosen) {
      if (!groups.has(data.harness[i])) groups.set(data.harness[i], []);
      groups.get(data.harness[i]).push(i);
    }
    const item = ([harness, cells]) => {
      const figures = this.figures(cells);
      const worst = cells.reduce((a, b) => (data.kindOf[data.result[b]] > data.kindOf[data.result[a]] ? b : a));
      const details = make("details", {}, make("summary", {}, this.tag(worst), ` ${data.harnesses[harness][1]} `,
        make("span", { class: "quiet" }, `${data.dtypes[data.dtypeOf[harness]]} · ${count(cells.length, "cell")} · ` +
          `${inUlps(figures.ulps)} ULPs · ${inSeconds(figures.seconds)}`)));
      details.addEventListener("toggle", () => {
        if (details.children.length > 1) return;
        const rows = cells.map((i) => make("tr", {}, make("th", { scope: "row" }, this.placeName(i)),
          make("td", {}, this.tag(i)), make("td", {}, inUlps(data.ulps[i])), make("td", {}, inSeconds(data.seconds[i]))));
        details.append(make("div", { class: "scrolls" }, make("table", { class: "plain" }, make("tbody", {}, ...rows))));
      });
      return details;
    };
    const worst = ([, cells]) => Math.max(...cells.map((i) => data.kindOf[data.result[i]]));
    const sorted = [...groups].sort((a, b) => worst(b) - worst(a));
    return section(`Test cases (${number(groups.size)})`, long("div", sorted, item));
  }

  rules(name) {
    const { data } = this;
    const numbers = of(data.rules, name);
    const items = numbers.map((n) => make("details", { open: numbers.length < 4 || undefined },
      make("summary", {}, data.sources[n][0]), make("pre", { tabindex: 0 }, make("code", {}, data.sources[n][1]))));
    return section("How it is lowered", ...(items.length ? items : [quiet("Its source is not known.")]));
  }

  tag(i) {
    const { data } = this;
    const [outcome, verdict] = data.results[data.result[i]];
    const text = outcome === verdict ? outcome : `${word(verdict)}: ${outcome}`;
    return make("span", { class: `tag ${CLASSES[data.kindOf[data.result[i]]]}` }, text);
  }

  placeName(i) {
    const { data } = this;
    const [version, mode, target, device, variant] = data.places[data.place[i]];
    const extra = [variant === "plain" ? "" : variant, device === "cpu" ? "" : device,
      data.versions.length > 1 ? data.versions[version] : ""].filter(Boolean);
    return `${mode} on ${target}${extra.length ? ` (${extra.join(", ")})` : ""}`;
  }

  cellName(i) {
    return `${this.data.names[this.data.harness[i]]}, ${this.placeName(i)}`;
  }
}

function section(title, ...children) {
  return make("section", {}, make("h3", {}, title), ...children);
}

function quiet(text) {
  return make("p", { class: "quiet" }, text);
}

/** A list of which the rest is shown when one asks for it. */
function long(tag, values, item) {
  const list = make(tag, { class: "items" }, ...values.slice(0, MOST).map(item));
  if (values.length <= MOST) return list;
  const more = make("button", { type: "button" }, `Show ${number(values.length - MOST)} more`);
  more.addEventListener("click", () => {
    list.append(...values.slice(MOST).map(item));
    more.remove();
  });
  return make("div", {}, list, more);
}

/** A text whose times, as ISO 8601 has them, are dates that people read. */
function withDates(text) {
  return text.replace(/(\d{4})-(\d\d)-(\d\d)[T ][\d:.]+(Z|[+-]\d\d:?\d\d)?/g, (_, year, month, day) =>
    new Date(year, month - 1, day).toLocaleDateString("en-GB", { dateStyle: "long" }));
}

function inUlps(ulps) {
  if (Number.isNaN(ulps)) return "–";
  if (ulps === Infinity) return "∞";
  return ulps >= 1e6 ? ulps.toExponential(0) : ulps.toLocaleString("en-US", { maximumSignificantDigits: 2 });
}

function inSeconds(seconds) {
  return seconds >= 10 ? `${number(Math.round(seconds))} s` : `${seconds.toFixed(seconds >= 1 ? 1 : 3)} s`;
}

unpack().then((data) => {
  window.explorer = new Explorer(data);
  document.body.dataset.ready = "";
}).catch((error) => {
  $("counts").textContent = `The results cannot be shown: ${error.message}. The page needs a browser of 2023 or later.`;
});
