// What needs the script is shown only where it runs.

for (const section of document.querySelectorAll("[data-needs-script]")) section.hidden = false;
startTable();
startAsking();
