"use strict";
// Follow the system's colour scheme until the user chooses; pages from disk may not be able to store the choice.
(() => {
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* for this page only */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  const chosen = remembered();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const name = () => { button.textContent = now() === "dark" ? "Light" : "Dark"; };
    button.hidden = false;
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = now() === "dark" ? "light" : "dark";
      remember(now());
      name();
    });
    system.addEventListener("change", name);
    name();
  });
})();
