"use strict";
// Small comforts. Every page works without this file: links and forms do the work.

const toast = (words, tone = "") => {
  const line = document.createElement("p");
  line.className = `toast ${tone}`;
  line.textContent = words;
  document.querySelector(".toasts").append(line);
  setTimeout(() => line.remove(), 8000);
};

const chooseTheme = button => {
  const theme = button.value;
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  document.querySelector("meta[name=color-scheme]").content = theme || "light dark";
  for (const other of document.querySelectorAll(".theme button"))
    other.setAttribute("aria-pressed", String(other.value === theme));
};

document.addEventListener("submit", event => {
  const form = event.target;
  if (form.dataset.confirm && !confirm(form.dataset.confirm)) {
    event.preventDefault();
    return;
  }
  if (form.matches(".theme")) {
    event.preventDefault();
    chooseTheme(event.submitter);
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    fetch("/theme", { method: "POST", body: fields, headers: { "HX-Request": "true" } });
  }
});

document.addEventListener("click", event => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) {
    event.preventDefault();
    document.getElementById(opener.dataset.dialog).showModal();
  }
  const closer = event.target.closest("[data-close]");
  if (closer) {
    event.preventDefault();
    closer.closest("dialog").close();
  }
  for (const open of document.querySelectorAll("details.drawer[open], details.menu[open]"))
    if (!open.contains(event.target)) open.open = false;
});

document.addEventListener("keydown", event => {
  if (event.key === "Escape")
    for (const open of document.querySelectorAll("details.drawer[open], details.menu[open]")) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
});

// A filter takes effect at once; without scripts there is a button.
document.addEventListener("change", event => {
  const form = event.target.closest("form.filters");
  if (form && event.target.matches("select, input[type=date], input[type=checkbox]")) form.requestSubmit();
});

document.addEventListener("htmx:responseError", event => {
  const part = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  toast(part.querySelector(".toast")?.textContent || "That did not work. Open the page again.", "bad");
});
document.addEventListener("htmx:sendError", () => toast("The server does not answer.", "bad"));

for (const line of document.querySelectorAll(".toasts .toast")) setTimeout(() => line.remove(), 8000);
