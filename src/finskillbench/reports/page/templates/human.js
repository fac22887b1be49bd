"use strict";
// Shows one task at a time, measures its time, and keeps answers in the browser until they are saved as a file.
(() => {
  const byId = (id) => document.getElementById(id);
  const { participant, export: exported, minutes } = byId("main").dataset;
  const tasks = [...document.querySelectorAll(".task")];
  const key = `finskillbench ${exported} ${participant}`;
  const now = () => new Date().toISOString();
  let state = { export: exported, participant, consented: null, current: 0, episodes: {} };
  try { state = JSON.parse(localStorage.getItem(key)) ?? state; } catch { /* a browser without storage */ }
  let running = false, ticked = 0;
  const section = () => tasks[state.current];
  const record = () => state.episodes[section().dataset.name];

  function keep() {
    try { localStorage.setItem(key, JSON.stringify(state)); } catch { /* in this page only */ }
  }
  function problem() {
    if (record().answer === null) return "No answer yet";
    try {
      const answer = JSON.parse(record().answer);
      if (Object.prototype.toString.call(answer) !== "[object Object]") return "Not a JSON object";
      const missing = section().dataset.required.split(" ").filter((name) => name && !(name in answer));
      return missing.length ? `Missing: ${missing.join(", ")}` : "";
    } catch (error) { return `Not valid JSON: ${error.message}`; }
  }
  function show() {
    const done = state.current >= tasks.length, seconds = running ? Math.floor(record().seconds) : 0;
    byId("rest").hidden = running;
    tasks.forEach((each, place) => { each.hidden = !running || place !== state.current; });
    byId("where").textContent = done ? "" : `Task ${state.current + 1} of ${tasks.length}`;
    byId("clock").textContent = running ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : "";
    byId("pause").hidden = !running;
    byId("save").hidden = running || !state.consented;
    byId("start").hidden = done;
    byId("start").disabled = !byId("consent").checked;
    if (state.consented) byId("state").textContent = done ? "All tasks are submitted: save your answers" : "Paused";
    if (running) section().querySelector("[role=status]").textContent = problem() || "Valid JSON with the required keys";
  }
  function start() {
    state.consented ??= now();
    state.episodes[section().dataset.name] ??= { started: now(), ended: now(), seconds: 0, pauses: [], answer: null };
    if (record().seconds > 0) record().pauses.push([record().ended, now()]);
    [running, ticked] = [true, performance.now()];
    show();
    section().querySelector("h1").focus();
  }
  function tick() {
    if (!running) return;
    const time = performance.now();
    record().seconds = Math.min(record().seconds + (time - ticked) / 1000, 60 * minutes || Infinity);
    record().ended = now();
    ticked = time;
    keep();
    if (minutes && record().seconds >= 60 * minutes) submit(); else show();
  }
  // At its time limit a task is submitted too, and the next one waits until somebody is there to start it.
  function submit() {
    running = false;
    state.current += 1;
    keep();
    show();
  }
  function paste(event) {
    const rows = event.clipboardData.getData("text").trim().split(/\r?\n/).map((line) => line.split("\t").map((text) => text.trim()));
    if (rows.some((row) => row.length < 2)) return;
    const value = (text = "") => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text);
    const found = rows[0].length === 2 ? Object.fromEntries(rows.map(([name, text]) => [name, value(text)]))
      : rows.slice(1).map((row) => Object.fromEntries(rows[0].map((name, place) => [name, value(row[place])])));
    event.preventDefault();
    event.target.setRangeText(JSON.stringify(found, null, 2), event.target.selectionStart, event.target.selectionEnd, "end");
    event.target.dispatchEvent(new Event("input"));
  }

  for (const each of tasks) {
    const box = each.querySelector("textarea");
    box.value = state.episodes[each.dataset.name]?.answer ?? box.defaultValue;
    box.addEventListener("input", () => {
      record().answer = box.value.trim() === "" || box.value === box.defaultValue ? null : box.value;
      tick();
    });
    box.addEventListener("paste", paste);
    each.querySelector("button").addEventListener("click", () => {
      const wrong = problem();
      const submits = !wrong || confirm(`${wrong}. Submit it as it is?`);
      tick();
      if (submits && each === section()) {
        submit();
        if (state.current < tasks.length) start();
      }
    });
  }
  byId("consent").checked = state.consented !== null;
  byId("consent").addEventListener("change", show);
  byId("start").addEventListener("click", start);
  byId("pause").addEventListener("click", () => { tick(); running = false; show(); });
  byId("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(state, null, 1)], { type: "application/json" }));
    link.download = `${participant}.json`;
    link.click();
  });
  setInterval(tick, 1000);
  show();
})();
