"""Texts that a model may say and that must stay text wherever they go."""

HOSTILE_TEXTS = [
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    '"><b onmouseover=window.pwned=1>x</b>',
    "javascript:window.pwned=1",
    "{{ 7 * 7 }}{% for x in ().__class__ %}",
    "${7*7} #{7*7} <%= 7 %>",
    "'; DROP TABLE triple; --",
    '=HYPERLINK("http://localhost","x")',
    "+1+1",
    "-1",
    "@SUM(A1)",
    "\tTab",
    "\rReturn",
    "$\\frac{1}{0}$ \\input{/etc/passwd} %",
    "$unbalanced",
    "_^{}\\",
    "\x1b[31mred\x1b[0m",
    "\x00nul",
    "\x07bell",
    "back\x08space",
    "\u202eright to left",
    "zero\u200bwidth",
    "\u2028line separator",
    "\ufeffmark",
    "half \ud83d",
    "😀😀😀",
    "漢字かな",
    "العربية",
    "हिन्दी",
    "Ω≈ç√",
    "]]>",
    "<!-- comment",
    "&amp;&lt;&#x27;",
    "<style>*{display:none}</style>",
    "line\nbreak",
    "a" * 10_000,
    "word " * 2_000,
    "MATCH (n) DETACH DELETE n",
    "`backticks`",
    "\\\\",
    '"quoted"',
    "'single'",
    "../../../etc/passwd",
    "CON",
    "%s %d %n",
    "null",
    "undefined",
    "NaN",
    "true",
    "0",
]


def _build_corpus() -> list[str]:
    """At least 200 distinct texts: the ones above, and families of them."""
    formulas = [
        lead + body
        for lead in "=+-@"
        for body in ("cmd|' /C calc'!A0", "SUM(A1:A9)", "1+1", "IMPORTXML(A1,A2)")
    ]
    latex = [
        f"\\{command}{{x}}"
        for command in (
            "input",
            "include",
            "write18",
            "immediate\\write18",
            "def\\x",
            "let",
            "csname",
            "newcommand",
            "openin5",
            "read5 to\\x",
            "catcode`\\%",
            "end{document}",
            "begin{verbatim}",
            "href{javascript:1}",
            "special",
            "typeout",
            "loop\\iftrue",
            "usepackage",
            "verb|x|",
        )
    ] + [
        "^^5cinput",
        "$$",
        "$a",
        "{",
        "}",
        "}{",
        "%",
        "#1",
        "&",
        "~",
        "^",
        "_",
        "\\",
        "\\\\",
        "--",
        "``",
    ]
    markup = [
        f"<{tag}>x</{tag}>"
        for tag in ("script", "iframe", "b", "style", "foreignObject", "title", "td")
    ] + [
        "<![CDATA[x]]>",
        "<?xml version='1.0'?>",
        "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///x'>]>&e;",
        "<!--",
        "-->",
        "&lt;",
        "&#0;",
        "&amp;amp;",
        "</svg>",
        "</data>",
        "<HTML-like>",
        "<<B>bold</B>>",
    ]
    queries = [
        "'",
        '"',
        "'}) DETACH DELETE n //",
        "\\'",
        "\\\\'",
        "`",
        "``",
        "/* x */",
        "// x",
        "; DROP DATABASE neo4j;",
        "$param",
        "{uid: 1}",
        "\\u0027}) MATCH (n) DELETE n //",
        "\u2019 OR 1=1",
        "' UNION ALL RETURN 1 //",
        "CALL dbms.shutdown()",
        "LOAD CSV FROM 'file:///x' AS r",
        ":params {}",
        "\\N",
        "\\n",
        "\\l\\r\\G",
    ]
    terminal = [
        f"\x1b{rest}" for rest in ("[2J", "]0;title\x07", "[8m", "c", "[6n", "P1;1|x\x1b\\", "(0")
    ] + [f"a{chr(code)}b" for code in (*range(0x0, 0x20), *range(0x7F, 0xA0))]
    unicode = [
        f"a{character}b"
        for character in (
            "\u00ad\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u2028\u2029\u2066\u2069"
            "\ufffe\uffff\U000e0041\U0001f468"
        )
    ] + ["e\u0301" * 9, "\u0e01\u0e33", "\u1112\u1161\u11ab", "ß", "İ", "ﬁ", "Ⅷ", "½", "№", "Ǆ"]
    cells = [
        "a,b",
        "a;b",
        "a\tb",
        'a"b',
        '"',
        '""',
        "a\r\nb",
        "\n",
        " ",
        "",
        "'",
        ",",
        "1e309",
        "-0",
        "0x1F",
        "1/2/2024",
    ]
    return formulas + latex + markup + queries + terminal + unicode + cells


CORPUS = list(dict.fromkeys([*HOSTILE_TEXTS, *_build_corpus()]))
assert len(CORPUS) >= 200
