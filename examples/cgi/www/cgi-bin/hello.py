#!/usr/bin/env python3
import html
import os
from urllib.parse import parse_qs

name = parse_qs(os.environ["QUERY_STRING"]).get("name", ["stranger"])[0]
print("Content-Type: text/html; charset=utf-8")
print()
print(f"<h1>Hello, {html.escape(name)}!</h1>")
