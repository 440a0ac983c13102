"""Random bits of Philox4x64-10, the words of NumPy's `Philox`.

    void wend.philox(key, counter, words, count)

writes the words of the blocks after `counter`, four a block; Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3" (2011), section 2.2. All are u64: `key` is two, `counter` four, the
lowest first.
"""

from __future__ import annotations

from wend.backends.native.target.writer import Writer

NAME, TYPES = "wend.philox", "ptr, ptr, ptr, i64"
ROUNDS = 10
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
# By which each word of the key grows after a round: the golden ratio and the root of 3, less 1
WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


def library() -> str:
    """Return the module."""
    params = ", ".join(f"i64 %{name}" for name in ("k0", "k1", "c0", "c1", "c2", "c3"))
    return "\n".join(
        [
            f"define void @{NAME}(ptr %key, ptr %counter, ptr %words, i64 %count) nounwind {{",
            *_generate(Writer()),
            "}",
            f"define internal {{i64, i64, i64, i64}} @block({params}) nounwind alwaysinline {{",
            *_encrypt(Writer()),
            "}",
            "",
        ]
    )


def _generate(w: Writer) -> list[str]:
    w.start("entry")
    w.open_entry()
    key = [_load(w, "%key", k) for k in range(2)]
    counter = [_load(w, "%counter", k) for k in range(4)]
    whole = w.define("lshr i64 %count, 2")

    def block(number: str) -> list[str]:
        words = _add(w, counter, w.define(f"add i64 {number}, 1"))
        type, args = "{i64, i64, i64, i64}", ", ".join(f"i64 {x}" for x in (*key, *words))
        result = w.define(f"call {type} @block({args})")
        return [w.define(f"extractvalue {type} {result}, {k}") for k in range(4)]

    def store(number: str, words: list[str], k: int) -> None:
        at = w.define(f"add i64 {w.define(f'shl i64 {number}, 2')}, {k}")
        address = w.define(f"getelementptr i64, ptr %words, i64 {at}")
        w.do(f"store i64 {words[k]}, ptr {address}")

    def each(number: str) -> None:
        words = block(number)
        for k in range(4):
            store(number, words, k)

    w.loop(whole, each)
    left, some, done = w.define("and i64 %count, 3"), w.new_label("some"), w.new_label("done")
    w.branch(w.define(f"icmp eq i64 {left}, 0"), done, some)
    w.start(some)
    words = block(whole)
    for k in range(3):
        store(whole, words, k)
        following = w.new_label("more")
        w.branch(w.define(f"icmp eq i64 {left}, {k + 1}"), done, following)
        w.start(following)
    w.jump(done)
    w.start(done)
    w.do("ret void")
    return w.lines


def _load(w: Writer, pointer: str, k: int) -> str:
    return w.define(f"load i64, ptr {w.define(f'getelementptr i64, ptr {pointer}, i64 {k}')}")


def _add(w: Writer, counter: list[str], number: str) -> list[str]:
    """Add a number to a counter of 256 bits."""
    words, carry = [], number
    for word in counter:
        words.append(w.define(f"add i64 {word}, {carry}"))
        carry = w.define(f"zext i1 {w.define(f'icmp ult i64 {words[-1]}, {carry}')} to i64")
    return words


def _encrypt(w: Writer) -> list[str]:
    w.start("entry")
    key, counter = ["%k0", "%k1"], ["%c0", "%c1", "%c2", "%c3"]
    for number in range(ROUNDS):
        high, low = zip(
            *(_product(w, counter[2 * k], MULTIPLIERS[k]) for k in range(2)), strict=True
        )
        mixed = [
            w.define(
                f"xor i64 {w.define(f'xor i64 {high[1 - k]}, {counter[2 * k + 1]}')}, {key[k]}"
            )
            for k in range(2)
        ]
        counter = [mixed[0], low[1], mixed[1], low[0]]
        if number < ROUNDS - 1:
            key = [w.define(f"add i64 {key[k]}, {_signed(WEYL[k])}") for k in range(2)]
    value, type = "poison", "{i64, i64, i64, i64}"
    for k, word in enumerate(counter):
        value = w.define(f"insertvalue {type} {value}, i64 {word}, {k}")
    w.do(f"ret {type} {value}")
    return w.lines


def _product(w: Writer, x: str, factor: int) -> tuple[str, str]:
    """Return the high and the low half of a product of 128 bits."""
    wide = w.define(f"mul i128 {w.define(f'zext i64 {x} to i128')}, {factor}")
    high = w.define(f"trunc i128 {w.define(f'lshr i128 {wide}, 64')} to i64")
    return high, w.define(f"trunc i128 {wide} to i64")


def _signed(word: int) -> int:
    return word - (word >> 63 << 64)
