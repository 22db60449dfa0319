# SPDX-License-Identifier: MIT
"""Random expressions of the language, each with the same in C: structure by parentheses, and what C leaves open by macros of world.h.

python3 generate.py --seed N --count M [--no-registers] [--numbers] > cases.c
"""

import argparse
import json
import random

POSTFIX, UNARY, COND = 16, 15, 3
PRECEDENCE = {"*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, ">": 10, "<=": 10, ">=": 10, "==": 9, "!=": 9,
              "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4}


class Type:
    def __init__(self, kind, name=None, to=None, n=0):
        self.kind, self.name, self.to, self.n = kind, name, to, n


def pointer(to):
    return Type("pointer", f"{to.name} *" if to.name and not to.name.endswith("*") else None, to)


def array(to, n):
    return Type("array", None, to, n)


INT, REAL, VOID = Type("int", "int"), Type("real", "double"), Type("void", "void")
SINGLE, CHAR, UCHAR = Type("real", "float"), Type("int", "char"), Type("int", "unsigned char")
LEAF, NODE, BOTH = Type("struct", "struct leaf"), Type("struct", "struct node"), Type("struct", "union both")
STRING = pointer(CHAR)
LEAF.members = [("h", INT), ("c", INT), ("f", SINGLE)]
BOTH.members = [("bits", INT), ("real", SINGLE), ("bytes", array(INT, 4))]
INTS = "i8 u8 i16 u16 i32 u32 i64 u64 ch truth color sign alias octet".split()
BITS = "b3 b17 s5 b1 b31 s32 b32 b40 s63 b9 bcolor".split()
WIDE = {"b40": "(unsigned long)", "s63": "(long)"}  # gcc computes here with a type of 40 or 63 bits; the language, like clang, with the declared type
NODE.members = [(x, INT) for x in INTS] + [("f", SINGLE), ("d", REAL), ("leaf", LEAF), ("both", BOTH), ("whole", INT), ("half", array(INT, 2)),
                ("arr", array(INT, 5)), ("grid", array(array(INT, 4), 3)), ("leaves", array(LEAF, 3)), ("next", pointer(NODE)), ("ip", pointer(INT)),
                ("cp", pointer(UCHAR)), ("dp", pointer(REAL)), ("vp", pointer(VOID)), ("lp", pointer(LEAF)), ("pp", pointer(pointer(NODE))),
                ("name", array(CHAR, 8)), ("s", STRING)]
GLOBALS = [(x, INT) for x in "mine g_i8 g_u16 g_i32 g_u32 g_i64 g_u64 g_sign g_const".split()] + [
    ("g_d", REAL), ("g_f", SINGLE), ("g_node", NODE), ("g_np", pointer(NODE)), ("table", array(pointer(NODE), 4))]
PARAMETERS = [(x, INT) for x in "pi pc pl ps pu stack_long stack_short".split()] + [("pd", REAL), ("pf", SINGLE), ("pn", pointer(NODE))]
REGISTERS = {"rax": 0, "rcx": 1, "rbx": 3, "rbp": 5, "r8": 8, "r11": 11, "r15": 15}
PARTS = {"eax": (0, "uint32_t"), "ebx": (3, "uint32_t"), "bx": (3, "uint16_t"), "dil": (7, "uint8_t"), "r12d": (12, "uint32_t"), "r9w": (9, "uint16_t")}
ENUMERATORS = "RED GREEN BLUE MINUS ZERO PLUS".split()
CASTS = ["char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long", "unsigned long long", "uint8_t",
         "int16_t", "uint32_t", "int64_t", "size_t", "bool", "_Bool", "enum color", "enum sign", "word", "octet_t", "long int", "short unsigned int"]
DECIMALS = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 127, 128, 255, 256, 1000, 32767, 65535, 65536, 2147483647, 2147483648, 4294967295, 4294967296,
            9223372036854775807]
TEXTS = ["", "GET", "GET /1", "PUT", "longer than thirty-two characters, by a few of them", "GE"]
PATTERNS = ["*", "GET*", "?ET*", "*1", "P?T", "*b?", "longer*few*", "", "a*"]


class Expr:
    """`text` in the language with its precedence, `c` in C, and for objects in memory `place`, a C pointer to it. `behind`: the pointer of *p."""

    behind = None

    def __init__(self, text, c, type, prec=POSTFIX, place=None, literal=False, bits=False):
        self.text, self.c, self.type, self.prec, self.place, self.literal, self.bits = text, c, type, prec, place, literal, bits


class Generator:
    def __init__(self, seed, registers):
        self.r = random.Random(seed)
        self.registers = registers
        # A library's thread-local variables are not available.
        self.globals = [g for g in GLOBALS if g[0] != "mine" or not registers]

    def one_in(self, n):
        return self.r.randrange(n) == 0

    def at_least(self, e, prec):
        return f"({e.text})" if e.prec < prec or self.one_in(8) else e.text

    # ---- objects ----

    def object(self, text, place, type, prec=POSTFIX):
        c = f"(*({place}))" if type.kind in ("array", "struct") else f"AT({place})"
        return Expr(text, c, type, prec, place)

    def root(self):
        name, type = self.r.choice(self.globals)
        return self.object(name, f"&{name}", type)

    def node_pointer(self, depth):
        choices = [lambda: self.parameter("pn"), lambda: self.object("g_np", "&g_np", pointer(NODE))]
        if depth > 0:
            choices += [lambda: self.member(self.node(depth - 1), "next"), lambda: self.index(self.object("table", "&table", array(pointer(NODE), 4)), depth - 1),
                        lambda: self.deref(self.member(self.node(depth - 1), "pp"))]
        return self.r.choice(choices)()

    def node(self, depth):
        if self.one_in(4):
            return self.object("g_node", "&g_node", NODE)
        if self.one_in(5):
            memory = Expr("memory.nodes", "memory.nodes", array(NODE, 3), POSTFIX, "&memory.nodes")
            return self.index(memory, depth - 1)
        p = self.node_pointer(depth)
        return self.index(p, 0, small=True) if self.one_in(6) else self.deref(p)

    def deref(self, p):
        e = self.object(f"*{self.at_least(p, UNARY)}", f"({p.c})", p.type.to, UNARY)
        e.behind = p
        return e

    def member(self, e, name):
        """The struct may be *p: then its member is p->name."""
        type = dict(NODE.members + LEAF.members + BOTH.members + [(b, INT) for b in BITS]).get(name)
        if e.behind and self.r.random() < 0.8:
            text = f"{self.at_least(e.behind, POSTFIX)}{self.r.choice(['->', '->', '.'])}{name}"
        else:
            text = f"{self.at_least(e, POSTFIX)}.{name}"
        if name in BITS:
            return Expr(text, f"({WIDE.get(name, '')}AT({e.place}).{name})", INT, bits=True)
        return self.object(text, f"&({e.place})->{name}", type)

    def index(self, base, depth, small=False):
        n = base.type.n or 2
        pick = self.r.randrange(4)
        if pick == 0 or small or depth <= 0:
            i = Expr(*[str(self.r.randrange(n + (1 if self.one_in(6) else 0)))] * 2, INT)
        elif pick == 1:
            i = self.binary_of("&", self.integer(depth - 1), Expr("3", "3", INT, literal=True))
        else:
            i = self.r.choice([lambda: self.parameter("pc"), lambda: self.object("g_i8", "&g_i8", INT),
                               lambda: Expr("GREEN", "GREEN", INT), lambda: self.member(self.node(depth - 1), "b3")])()
        return self.object(f"{self.at_least(base, POSTFIX)}[{i.text}]", f"({base.c}) + ({i.c})", base.type.to)

    def parameter(self, name):
        return Expr(name, f"P.{name}", dict(PARAMETERS)[name])

    # ---- integers ----

    def literal(self):
        v = self.r.choice(DECIMALS) if self.one_in(2) else self.r.randrange(100)
        kind = self.r.randrange(8)
        if kind == 0 and v < 2**63:
            return Expr(hex(v), hex(v), INT, literal=True)
        if kind == 1 and v < 2**31:
            return Expr("-" + str(v), f"(-{v})", INT, UNARY, literal=True)
        if kind == 2:
            suffix = self.r.choice(["u", "l", "ul", "UL", "ull", "LL"])
            return Expr(str(v) + suffix, str(v) + suffix, INT)
        if kind == 3:
            c = self.r.choice(["'a'", "'\\n'", "'0'", "'\\''", "'\\xff'"])
            return Expr(c, c, INT, literal=True)
        return Expr(str(v), str(v), INT, literal=True)

    def variable(self, depth):
        kind = self.r.randrange(10)
        if kind < 2:
            name = self.r.choice([n for n, t in PARAMETERS if t is INT])
            return self.parameter(name)
        if kind < 4:
            name = self.r.choice([n for n, t in self.globals if t is INT])
            return self.object(name, f"&{name}", INT)
        if kind == 4:
            name = self.r.choice(ENUMERATORS)
            return Expr(name, name, INT)
        if kind == 5 and self.registers:
            if self.one_in(2):
                name = self.r.choice(list(REGISTERS))
                return Expr("$" + name, f"(long)P.gpr[{REGISTERS[name]}]", INT)
            name = self.r.choice(list(PARTS))
            return Expr("$" + name, f"(long)({PARTS[name][1]})P.gpr[{PARTS[name][0]}]", INT)
        if kind == 6:
            return self.literal()
        if kind == 7:
            return self.member(self.node(depth), self.r.choice(BITS))
        if kind == 8:
            return self.element(depth)
        return self.member(self.node(depth), self.r.choice(INTS + ["whole"]))

    def element(self, depth):
        n = self.node(depth)
        pick = self.r.randrange(7)
        if pick == 0:
            return self.index(self.member(n, "arr"), depth)
        if pick == 1:
            return self.index(self.index(self.member(n, "grid"), depth), depth)
        if pick == 2:
            return self.member(self.index(self.member(n, "leaves"), depth), self.r.choice("hc"))
        if pick == 3:
            return self.deref(self.member(n, self.r.choice(["ip", "cp"])))
        if pick == 4:
            return self.index(self.member(n, "cp"), depth)
        if pick == 5:
            return self.member(self.deref(self.member(n, "lp")), "h")
        return self.deref(self.binary_of("+", self.member(n, "ip"), self.index_value(depth)))

    def index_value(self, depth):
        return self.r.choice([lambda: Expr("1", "1", INT, literal=True), lambda: self.member(self.node(depth), "b3"), lambda: self.parameter("pc")])()

    def binary_of(self, op, a, b):
        p = PRECEDENCE[op]
        text = f"{self.at_least(a, p)} {op} {self.at_least(b, p + 1)}" if self.one_in(2) else f"{self.at_least(a, p)}{op}{self.space(op, b, p)}"
        type = a.type if a.type.kind == "pointer" else b.type if b.type.kind == "pointer" else a.type if a.type.kind == "real" else b.type
        if op in ("/", "%") and a.type.kind != "real" and b.type.kind != "real":
            c = f"{'DIVIDE' if op == '/' else 'MODULO'}(+({a.c}), +({b.c}))"
        elif op in ("<<", ">>"):
            c, type = f"SHIFT({a.c}, {op}, {b.c})", INT
        else:
            c = f"(({a.c}) {op} ({b.c}))"
        if op in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
            type = INT
        return Expr(text, c, type, p)

    def space(self, op, b, p):
        """Separates operators: a--1, a&&&b and a/ *p have other meanings."""
        text = self.at_least(b, p + 1)
        return (" " if text[0] in "-+&*'" or op in "<>" else "") + text

    def pair(self, make, depth):
        a, b = make(depth - 1), make(depth - 1)
        while a.literal and b.literal:
            b = make(max(depth - 1, 0))
        return (a, b) if self.one_in(2) else (b, a)

    def integer(self, depth):
        if depth <= 0 or self.one_in(7):
            return self.variable(depth)
        pick = self.r.randrange(20)
        if pick < 8:
            op = self.r.choice(list("+-*/%&|^") + ["<<", ">>", "<", ">", "<=", ">=", "==", "!="])
            a, b = self.pair(self.integer, depth)
            # A number that is shifted by a register has the register's 64 bits.
            return self.binary_of(op, b, a) if op in ("<<", ">>") and a.literal and "$" in b.text else self.binary_of(op, a, b)
        if pick < 10:
            return self.binary_of(self.r.choice(["&&", "||"]), *self.pair(self.truth, depth))
        if pick == 10:
            return self.cond(*self.pair(self.integer, depth), depth)
        if pick < 13:
            return self.unary(self.integer(depth - 1))
        if pick < 15:
            return self.cast(self.integer(depth - 1) if self.one_in(2) else self.floating(depth - 1))
        if pick == 15:
            return self.binary_of(self.r.choice(["<", ">", "<=", ">=", "==", "!="]), self.floating(depth - 1), self.number(depth - 1))
        if pick == 16:
            return self.pointers(depth)
        if pick == 17:
            return self.size(depth)
        if pick == 18:
            return self.strings(depth)
        return self.variable(depth)

    def cond(self, a, b, depth):
        c = self.truth(depth - 1)
        type = a.type if a.type.kind != "int" else b.type
        return Expr(f"{self.at_least(c, COND + 1)} ? {a.text} : {self.at_least(b, COND)}", f"(({c.c}) ? ({a.c}) : ({b.c}))", type, COND)

    def unary(self, e):
        op = self.r.choice("-~!+" if e.type.kind == "int" else "-!+")
        while e.literal:
            e = self.variable(0)
        text = self.at_least(e, UNARY)
        return Expr(op + (" " if text[0] == op else "") + text, f"({op}({e.c}))", INT if op == "!" else e.type, UNARY)

    def cast(self, e):
        name = self.r.choice(CASTS)
        c = f"(({name})({e.c}))"
        if e.type.kind == "real" and "ool" not in name:
            c = f"(({name}){'to_unsigned' if name in ('unsigned long', 'unsigned long long', 'size_t') else 'to_integer'}({e.c}))"
        text = f"({e.text})" if name == "word" else self.at_least(e, UNARY)
        return Expr(f"({name}){text}", c, INT, UNARY)

    def truth(self, depth):
        pick = self.r.randrange(8)
        return self.floating(depth) if pick == 0 else self.node_pointer(depth) if pick == 1 else self.integer(depth)

    def number(self, depth):
        return self.floating(depth) if self.one_in(2) else self.integer(depth)

    # ---- others ----

    def floating(self, depth):
        pick = self.r.randrange(9) if depth > 0 else self.r.randrange(5)
        if pick == 0:
            name = self.r.choice(["pd", "pf"])
            return self.parameter(name)
        if pick == 1:
            name = self.r.choice(["g_d", "g_f"])
            return self.object(name, f"&{name}", REAL)
        if pick == 2:
            v = self.r.choice(["0.5", "1e10", ".25", "3.", "0.1", "1e-3", "2.5f", "0.1f", "1e2F"])
            return Expr(v, v, REAL)
        if pick == 3:
            return self.member(self.node(depth), self.r.choice(["f", "d"]))
        if pick == 4:
            return self.member(self.r.choice([self.member(self.node(depth), "leaf"), self.index(self.member(self.node(depth), "leaves"), depth)]), "f")
        if pick == 5:
            e = self.number(depth - 1)
            name = self.r.choice(["float", "double"])
            return Expr(f"({name}){self.at_least(e, UNARY)}", f"(({name})({e.c}))", REAL, UNARY)
        if pick == 6:
            return self.cond(self.floating(depth - 1), self.number(depth - 1), depth)
        if pick == 7:
            e = self.floating(depth - 1)
            text = self.at_least(e, UNARY)
            return Expr("-" + (" " if text[0] == "-" else "") + text, f"(-({e.c}))", REAL, UNARY)
        a, b = self.floating(depth - 1), self.number(depth - 1)
        return self.binary_of(self.r.choice("+-*/"), *((a, b) if self.one_in(2) else (b, a)))

    def address(self, depth):
        n = self.node(depth)
        e = self.r.choice([lambda: self.index(self.member(n, "arr"), depth), lambda: self.member(n, "i32"), lambda: self.element_place(n, depth)])()
        return Expr("&" + self.at_least(e, UNARY), f"({e.place})", pointer(e.type), UNARY)

    def element_place(self, n, depth):
        return self.index(self.member(n, "arr"), depth)

    def pointers(self, depth):
        """Integers computed from pointers: comparisons, differences, casts."""
        pick = self.r.randrange(5)
        if pick == 0:
            return self.binary_of(self.r.choice(["==", "!=", "<", ">="]), self.node_pointer(depth - 1), self.node_pointer(depth - 1))
        if pick == 1:
            return self.binary_of(self.r.choice(["==", "!="]), self.node_pointer(depth - 1), Expr("0", "0", INT, literal=True))
        if pick == 2:
            n = self.member(self.object("g_node", "&g_node", NODE), "arr")
            a = self.index(n, depth)
            return Expr(f"&{self.at_least(a, UNARY)} - {n.text}", f"({a.place} - {n.c})", INT, 12)
        if pick == 3:
            e = self.address(depth - 1)
            return Expr(f"(unsigned long){self.at_least(e, UNARY)}", f"((unsigned long)({e.c}))", INT, UNARY)
        p = self.cond(self.member(self.node(depth - 1), "ip"), self.address(depth - 1), depth)
        return self.deref(Expr(f"({p.text})", p.c, pointer(INT)))

    def size(self, depth):
        if self.one_in(3):
            name = self.r.choice(CASTS + ["struct node", "struct leaf", "char *", "struct node **", "union both", "double", "float"])
            return Expr(f"sizeof({name})", f"sizeof({name})", INT)
        e = self.r.choice([self.root, lambda: self.number(depth - 1), lambda: self.node(depth - 1), lambda: self.member(self.node(depth - 1), "grid")])()
        if e.bits:
            return Expr("sizeof(int)", "sizeof(int)", INT)
        return Expr(f"sizeof({e.text})", f"sizeof({e.c})", INT) if e.prec < UNARY or e.text[0] == "(" or self.one_in(2) else Expr(f"sizeof {e.text}", f"sizeof({e.c})", INT, UNARY)

    def strings(self, depth):
        name = self.r.choice(["s", "s", "name"])
        p = self.member(self.node(depth - 1), name)
        if self.one_in(2):
            return self.counted(p, depth)
        if self.one_in(3):
            pattern = self.r.choice(PATTERNS)
            return Expr(f"{self.at_least(p, 10)} =~ {json.dumps(pattern)}", f"like({p.c}, {json.dumps(pattern)})", INT, 9)
        text, op = self.r.choice(TEXTS), self.r.choice(["==", "!="])
        sides = [self.at_least(p, 10), json.dumps(text)]
        if self.one_in(3):
            sides.reverse()
        return Expr(f"{sides[0]} {op} {sides[1]}", f"({'!' if op == '!=' else ''}same_text({p.c}, {json.dumps(text)}))", INT, 9)

    def counted(self, p, depth):
        """str(p, n): a string of n bytes; often as many as the text that it is compared with has."""
        text = self.r.choice(TEXTS + PATTERNS[1:])
        n = self.integer(depth - 1)
        while n.literal:  # would be a limit, not a length
            n = self.variable(0)
        if self.one_in(2):
            n = self.binary_of("+", self.binary_of("*", n, Expr("0", "0", INT, literal=True)), Expr(str(len(text)), str(len(text)), INT, literal=True))
        limit = self.r.choice(["", "", ", 7"])
        s, op = f"str({p.text}, {n.text}{limit})", self.r.choice(["==", "!=", "=~"])
        if self.one_in(4):
            s, p, n = "g_text", Expr("", "g_text.data", STRING), Expr("", "g_text.len", INT)
        call = "LIKE_COUNTED" if op == "=~" else "SAME_COUNTED"
        return Expr(f"{s} {op} {json.dumps(text)}", f"({'!' if op == '!=' else ''}{call}({p.c}, {n.c}, {json.dumps(text)}))", INT, 9)

    def top(self):
        depth = self.r.choice([0, 1, 1, 2, 2, 3, 3, 4, 5])
        pick = self.r.randrange(10)
        e = self.floating(depth) if pick == 0 else self.address(depth) if pick == 1 else self.node_pointer(depth) if pick == 2 else self.integer(depth)
        return e


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--no-registers", action="store_true")
    p.add_argument("--numbers", action="store_true", help="values are to be shown as numbers: no names of enumerations, no strings")
    a = p.parse_args()
    g = Generator(a.seed, not a.no_registers)
    print('#include "world.h"')
    texts = []
    while len(texts) < a.count:
        e = g.top()
        if len(e.text) > 600 or len(e.c) > 20000:
            continue
        answer = {"real": "ANSWER_REAL", "pointer": "ANSWER_POINTER"}.get(e.type.kind, "ANSWER")
        print(f"static void case_{len(texts)}(struct answer *r)\n{{\n\t{answer}({e.c});\n}}")
        texts.append({"real": "(double)(%s)", "pointer": "(unsigned long)(%s)"}.get(e.type.kind, "+(%s)") % e.text if a.numbers else e.text)
    print("const struct one_case cases[] = {")
    for i, text in enumerate(texts):
        print(f"\t{{{json.dumps(text)}, case_{i}}},")
    print("};\nconst unsigned ncases = sizeof(cases) / sizeof(*cases);")
    print("#ifdef PROGRAM\n#include \"program.h\"\n#endif")


if __name__ == "__main__":
    main()
