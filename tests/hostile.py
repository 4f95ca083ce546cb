"""Texts that a model may say and that must stay text wherever they go."""

HOSTILE = [
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    "\"><b onmouseover=window.pwned=1>x</b>",
    "javascript:window.pwned=1",
    "{{ 7 * 7 }}{% for x in ().__class__ %}",
    "${7*7} #{7*7} <%= 7 %>",
    "'; DROP TABLE triple; --",
    "=HYPERLINK(\"http://localhost\",\"x\")",
    "+1+1", "-1", "@SUM(A1)", "\tTab", "\rReturn",
    "$\\frac{1}{0}$ \\input{/etc/passwd} %",
    "$unbalanced", "_^{}\\",
    "\x1b[31mred\x1b[0m", "\x00nul", "\x07bell", "back\x08space",
    "\u202eright to left", "zero\u200bwidth", "\u2028line separator", "\ufeffmark",
    "half \ud83d", "😀😀😀", "漢字かな", "العربية", "हिन्दी", "Ω≈ç√",
    "]]>", "<!-- comment", "&amp;&lt;&#x27;", "<style>*{display:none}</style>",
    "line\nbreak", "a" * 10_000, "word " * 2_000,
    "MATCH (n) DETACH DELETE n", "`backticks`", "\\\\", "\"quoted\"", "'single'",
    "../../../etc/passwd", "CON", "%s %d %n", "null", "undefined", "NaN", "true", "0",
]  # fmt: skip
