"use strict";(()=>{const form=document.forms[0],box=form.elements.namedItem("filter"),out=form.querySelector("output"),
sent=box.value,rows=[...document.querySelectorAll("[data-e]")].map(e=>[e,e.querySelector("bdi").textContent.toLowerCase()]);
box.addEventListener("input",()=>{if(sent&&!box.value){form.submit();return}
const text=box.value.toLowerCase();let shown=0;for(const[e,name]of rows){e.hidden=!name.includes(text);shown+=!e.hidden}
out.value=text?`${shown} of ${rows.length}`:""})})()