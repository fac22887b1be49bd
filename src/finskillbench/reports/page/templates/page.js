"use strict";
// Sorting of tables, and the list of episodes with its filters. Texts are inserted as text nodes only.

// --- Tables in the page: a button in each head sorts the rows of each body.

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortTable(table, head, column));
  });
}

function sortTable(table, head, column) {
  const number = head.classList.contains("number");
  const first = number ? "descending" : "ascending";
  const other = number ? "ascending" : "descending";
  const order = head.getAttribute("aria-sort") === first ? other : first;
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const value = (row) => {
    const cell = row.cells[column];
    if (!number) return cell.textContent;
    return cell.dataset.sort === "" ? null : Number(cell.dataset.sort);
  };
  for (const body of table.tBodies) {
    body.append(...[...body.rows].sort((one, two) => compare(value(one), value(two), order)));
  }
}

// Missing values come last in either order.
function compare(one, two, order) {
  if (one === null || two === null) return (one === null) - (two === null);
  const sign = order === "descending" ? -1 : 1;
  return sign * (typeof one === "string" ? one.localeCompare(two) : one - two);
}

// --- The list of episodes.

const { names, columns } = JSON.parse(document.getElementById("data").textContent);
const ROWS = columns.entry.length;
const PAGE = 50;
const form = document.getElementById("filters");
const list = document.getElementById("list");
const FILTERS = { m: "entry", c: "condition", s: "sub_task", d: "difficulty", st: "status", ca: "cause" };
const whole = new Intl.NumberFormat("en-US");
const decimals = (digits) => (value) => value.toFixed(digits);
const named = (column) => (row) => names[column][columns[column][row]];
const plain = (column) => (row) => (columns[column] ? columns[column][row] : null);
// The score comes first: a narrow window shows the first columns.
const SHOWN = [
  { title: "Score", value: plain("score"), text: decimals(3) },
  { title: "Model", value: named("entry") },
  { title: "Condition", value: named("condition") },
  { title: "Subtask", value: named("sub_task") },
  { title: "Episode", value: (row) => names.task_id[columns.task_id[row]] + (columns.repeat[row] ? ` #${columns.repeat[row]}` : "") },
  { title: "Difficulty", value: named("difficulty") },
  { title: "Status", value: named("status") },
  { title: "Cause", value: named("cause"), optional: true },
  { title: "Incidents", value: (row) => (columns.incidents[row] ?? []).map((each) => names.incident[each]).join(", ") || null, optional: true, absent: "none" },
  { title: "Turns", value: plain("turns"), text: whole.format },
  { title: "Output tokens", value: plain("output"), text: whole.format },
  { title: "Seconds", value: plain("seconds"), text: decimals(1) },
  { title: "US dollars", value: plain("cost"), text: decimals(4), optional: true },
].filter((each) => !each.optional || Array.from({ length: ROWS }, (_, row) => each.value(row)).some((value) => value));

let fitting = [];
let start = 0;
let sorted = null;

function filled() {
  for (const [short, column] of Object.entries(FILTERS)) {
    const select = form.elements[short];
    if (!select) continue;
    names[column].forEach((name, place) => {
      if (name !== null) select.add(new Option(name, place));
    });
  }
  const heads = list.querySelector("thead tr");
  const leading = document.createElement("th");
  leading.scope = "col";
  leading.textContent = "Trajectory";
  heads.append(leading);
  SHOWN.forEach((shown, place) => {
    const head = document.createElement("th");
    const button = document.createElement("button");
    head.scope = "col";
    button.type = "button";
    button.textContent = shown.title;
    if (shown.text) head.className = "number";
    button.addEventListener("click", () => sortList(head, place));
    head.append(button);
    heads.append(head);
  });
}

function sortList(head, place) {
  const first = SHOWN[place].text ? "descending" : "ascending";
  const other = SHOWN[place].text ? "ascending" : "descending";
  const order = head.getAttribute("aria-sort") === first ? other : first;
  for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  sorted = { value: SHOWN[place].value, order };
  filter();
}

function filter() {
  const wanted = Object.entries(FILTERS)
    .filter(([short]) => form.elements[short]?.value)
    .map(([short, column]) => [columns[column], Number(form.elements[short].value)]);
  const most = form.elements.most.value === "" ? null : Number(form.elements.most.value);
  const text = form.elements.text.value.toLowerCase();
  const read = form.elements.read.checked;
  fitting = [];
  for (let row = 0; row < ROWS; row += 1) {
    if (!wanted.every(([column, value]) => column[row] === value)) continue;
    if (most !== null && (columns.score[row] === null || columns.score[row] > most)) continue;
    if (text && !names.task_id[columns.task_id[row]].toLowerCase().includes(text)) continue;
    if (read && columns.page[row] === undefined) continue;
    fitting.push(row);
  }
  if (sorted) {
    const keys = new Map(fitting.map((row) => [row, sorted.value(row) ?? null]));
    fitting.sort((one, two) => compare(keys.get(one), keys.get(two), sorted.order));
  }
  start = 0;
  draw();
}

function draw() {
  const scores = fitting.map((row) => columns.score[row]).filter((score) => score !== null);
  const mean = scores.length ? `, mean score ${(scores.reduce((one, two) => one + two, 0) / scores.length).toFixed(3)}` : "";
  document.getElementById("count").textContent = `${whole.format(fitting.length)} of ${whole.format(ROWS)} rows${mean}`;
  const shown = fitting.slice(start, start + PAGE);
  list.querySelector("tbody").replaceChildren(...shown.map(line));
  const last = start + shown.length;
  document.getElementById("where").textContent = shown.length ? `${whole.format(start + 1)} to ${whole.format(last)}` : "no matches";
  document.getElementById("before").disabled = start === 0;
  document.getElementById("next").disabled = last >= fitting.length;
}

function line(row) {
  const made = document.createElement("tr");
  const first = made.insertCell();
  first.append(trajectory(row));
  first.dataset.label = "Trajectory";
  for (const shown of SHOWN) {
    const cell = made.insertCell();
    const value = shown.value(row) ?? null;
    cell.dataset.label = shown.title;
    cell.append(...breakable(value === null ? shown.absent ?? "n/a" : shown.text ? shown.text(value) : value));
    if (shown.text) cell.className = "number";
  }
  return made;
}

// Allow line breaks after each part of a name.
function breakable(text) {
  return text.split(/(?<=[_/])/).flatMap((part) => [part, document.createElement("wbr")]);
}

// A link to the trajectory in the page, else the command that shows it.
function trajectory(row) {
  const task = names.task_id[columns.task_id[row]];
  if (columns.page[row] !== undefined) {
    const link = document.createElement("a");
    link.href = columns.page[row];
    link.textContent = "read";
    link.setAttribute("aria-label", `read ${task}, ${named("entry")(row)}, ${named("condition")(row)}`);
    return link;
  }
  const folder = named("arm")(row);
  if (folder === null) return "n/a";
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  const code = document.createElement("code");
  const path = `${folder}/${names.file[columns.task_id[row]]}__${columns.repeat[row]}.json.gz`;
  summary.textContent = "command";
  code.textContent = `finskillbench show ${quoted(path)}`;
  details.append(summary, code);
  return details;
}

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

// Cells of the heat map link here: #episodes?m=3&c=1&s=4, each an index into the names.
function followed() {
  const [target, query] = location.hash.slice(1).split("?");
  if (target !== "episodes" || query === undefined) return;
  form.reset();
  for (const [short, value] of new URLSearchParams(query)) {
    if (short in FILTERS && form.elements[short]) form.elements[short].value = value;
  }
  filter();
  document.getElementById("episodes").scrollIntoView();
  document.getElementById("episodes-title").focus({ preventScroll: true });
}

function turn(by) {
  start = Math.max(0, start + by * PAGE);
  draw();
  list.scrollIntoView({ block: "nearest" });
}

filled();
document.getElementById("unscripted").hidden = true;
for (const part of [form, list, document.getElementById("pager")]) part.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
document.getElementById("before").addEventListener("click", () => turn(-1));
document.getElementById("next").addEventListener("click", () => turn(1));
addEventListener("hashchange", followed);
filter();
followed();
