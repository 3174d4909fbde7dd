"use strict";
// The sample chooser. Its data is in the JSON block of the page; the URL fragment stores the selection.
(() => {
  const data = JSON.parse(document.getElementById("samples-data").textContent);
  const $ = (id) => document.getElementById(id);
  const [setBox, inputBox, shown, traceBox] = ["set", "input", "shown", "trace"].map($);
  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "polyline", "line", "text", "circle"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") node.addEventListener("click", value);
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };
  const marked = (segments) => segments.map(([piece, mark]) => (mark ? make("mark", {}, piece) : piece));
  const plain = (segments) => segments.map(([piece]) => piece).join("");

  let state = { set: 0, input: 0, trace: null };

  function fill(box, names, chosen) {
    box.replaceChildren(...names.map((name, i) => make("option", i === chosen ? { value: i, selected: "" } : { value: i }, name)));
  }

  function show() {
    const set = data.sets[state.set];
    const input = set.inputs[state.input];
    fill(setBox, data.sets.map((one) => one.title), state.set);
    fill(inputBox, set.inputs.map((one, i) => `${i + 1}. ${one.given}`), state.input);
    const cards = input.drafts.map((draft) => {
      const meta = draft.nll === null ? [] : [make("span", {}, `NLL ${draft.nll.toFixed(2)} per word by ${draft.target || "its own model"}`), make("span", {}, `${draft.steps} steps`)];
      if (draft.trace.length) {
        const pressed = state.trace === draft.system;
        meta.push(make("button", { type: "button", "aria-pressed": pressed, onclick: () => go({ trace: pressed ? null : draft.system }) }, "trace"));
      }
      return make("article", { class: "card" }, make("h4", {}, draft.title), make("p", {}, ...marked(draft.text)), make("div", { class: "meta" }, ...meta));
    });
    shown.replaceChildren(make("p", { class: "given" }, make("strong", {}, set.template ? "Template: " : "Keywords: "), input.given), make("div", { class: "cards" }, ...cards));
    showTrace(input.drafts.find((draft) => draft.system === state.trace));
  }

  function showTrace(draft) {
    if (!draft || !draft.trace.length) return traceBox.replaceChildren();
    const rows = draft.trace.map(([step, action, nll, text]) => make("tr", plain(text) === plain(draft.text) ? { class: "best" } : {},
      make("td", { class: "number" }, String(step)), make("td", {}, action), make("td", { class: "number" }, nll === null ? "" : nll.toFixed(2)), make("td", { class: "text" }, ...marked(text))));
    const head = make("tr", {}, ...["step", "action", "NLL per word", "draft"].map((name, i) => make("th", { scope: "col", class: i % 2 ? "" : "number" }, name)));
    const caption = make("caption", {}, `Accepted revisions of ${draft.title}, ${draft.trace.length - 1} of ${draft.tried} that were tried. The new word is marked, the draft that was given is in bold.`);
    traceBox.replaceChildren(make("h3", {}, `How ${draft.title} came to “${plain(draft.text)}”`), curve(draft),
      make("div", { class: "scroll", tabindex: "0" }, make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...rows))));
  }

  function curve(draft) {
    const points = draft.trace.filter(([, , nll]) => nll !== null).map(([step, , nll]) => [step, nll]);
    const width = 900, height = 140, left = 40, bottom = 22;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "NLL per word along the steps" });
    if (points.length < 2) return svg;
    const most = Math.max(...points.map(([, nll]) => nll)), least = Math.min(...points.map(([, nll]) => nll));
    const x = (step) => left + ((width - left - 10) * step) / Math.max(1, draft.steps);
    const y = (nll) => 8 + ((height - bottom - 14) * (most - nll)) / Math.max(1e-9, most - least);
    // A sentence is unchanged until the next accepted revision.
    const path = points.flatMap(([step, nll], i) => (i ? [[x(step), y(points[i - 1][1])], [x(step), y(nll)]] : [[x(step), y(nll)]]));
    path.push([x(draft.steps), y(points[points.length - 1][1])]);
    svg.append(
      make("line", { class: "axis", x1: left, x2: width - 10, y1: height - bottom, y2: height - bottom }),
      make("polyline", { class: "line", points: path.map((point) => point.map((v) => v.toFixed(1)).join(",")).join(" ") }),
      make("text", { x: 0, y: 16 }, most.toFixed(2)), make("text", { x: 0, y: height - bottom - 4 }, least.toFixed(2)),
      make("text", { x: left, y: height - 5 }, "step 0"), make("text", { x: width - 60, y: height - 5 }, `step ${draft.steps}`));
    return svg;
  }

  function go(change) {
    state = { ...state, ...change };
    const set = data.sets[state.set];
    const address = `#sample=${encodeURIComponent(`${set.name}/${set.inputs[state.input].id}`)}${state.trace ? `&trace=${encodeURIComponent(state.trace)}` : ""}`;
    history.replaceState(null, "", address);
    show();
  }

  function fromAddress() {
    const params = new URLSearchParams(location.hash.slice(1));
    const [name, id] = (params.get("sample") || "").split("/");
    const set = data.sets.findIndex((one) => one.name === name);
    if (set < 0) return;
    const input = Math.max(0, data.sets[set].inputs.findIndex((one) => one.id === id));
    state = { set, input, trace: params.get("trace") };
    $("samples").scrollIntoView({ behavior: "instant" });
  }

  if (!data.sets.length) return;
  setBox.addEventListener("change", () => go({ set: Number(setBox.value), input: 0 }));
  inputBox.addEventListener("change", () => go({ input: Number(inputBox.value) }));
  const turn = (by) => () => {
    const count = data.sets[state.set].inputs.length;
    go({ input: (state.input + by + count) % count });
  };
  $("previous").addEventListener("click", turn(-1));
  $("next").addEventListener("click", turn(1));
  $("chooser").hidden = false;
  window.addEventListener("hashchange", () => { fromAddress(); show(); });
  fromAddress();
  show();
})();
