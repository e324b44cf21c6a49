"""The fifteen pull requests that a Reviewer and a Fixer close by themselves, in one, two or three cycles."""

from __future__ import annotations

from langgraph_loopguard.demo.pulls import PullRequest
from langgraph_loopguard.demo.tools import BLACK, BLANKS, COMPARED, EMPTY_F, ISORT, OLD_TYPES, SPACES, UNUSED

ONE_CYCLE = (
    PullRequest(
        module="bisect",
        title="add rank()",
        imports="import itertools",
        code="""
            def rank(values, x):
                return sum(1 for value in values if value < x)
        """,
        checks=(UNUSED,),
        cycles=1,
    ),
    PullRequest(
        module="colorsys",
        title="add to_hex()",
        code="""
            def to_hex( r,g,b ):
                return '#%02x%02x%02x'%(int(r*255),int(g*255),int(b*255))
        """,
        checks=(BLACK,),
        cycles=1,
    ),
    PullRequest(
        module="fnmatch",
        title="add fingerprint()",
        imports="""
            import zlib
            import binascii
        """,
        code="""
            def fingerprint(pattern):
                return binascii.hexlify(zlib.compress(pattern.encode()))
        """,
        checks=(ISORT,),
        cycles=1,
    ),
    PullRequest(
        module="secrets",
        title="add token_digits()",
        code="""
            def token_digits(count=6):
                digits = range(10)\x20\x20
                return "".join(str(choice(digits)) for _ in range(count))\x20
        """,
        checks=(BLANKS,),
        cycles=1,
    ),
    PullRequest(
        module="stat",
        title="add describe()",
        code="""
            def describe(mode):
                if S_ISDIR(mode):
                    return f"a directory"
                return f"not a directory"
        """,
        checks=(EMPTY_F,),
        cycles=1,
    ),
    PullRequest(
        module="linecache",
        title="add first_line()",
        code="""
            def first_line(filename):
                lines = getlines(filename)
                return None if lines == None else lines[:1]
        """,
        checks=(COMPARED,),
        cycles=1,
    ),
    PullRequest(
        module="quopri",
        title="add escaped_share()",
        code="""
            def escaped_share(data):
                escaped=sum(1 for byte in data if byte>126)
                return escaped/max(len(data),1)
        """,
        checks=(SPACES,),
        cycles=1,
    ),
)

TWO_CYCLES = (
    PullRequest(
        module="copyreg",
        title="add registered()",
        imports="""
            import weakref
            import textwrap
            import fnmatch
        """,
        code="""
            def registered(pattern):
                names = (kind.__name__ for kind in dispatch_table)
                return textwrap.indent("\\n".join(n for n in names if fnmatch.fnmatch(n, pattern)), "  ")
        """,
        checks=(UNUSED, ISORT),
        cycles=2,
    ),
    PullRequest(
        module="hmac",
        title="add verify()",
        imports="import base64, textwrap",
        code="""
            def verify(key,message,signature,digest = 'sha256'):
                return compare_digest(base64.b64encode(HMAC(key,message,digest).digest()),signature)
        """,
        checks=(UNUSED, BLACK),
        cycles=2,
    ),
    PullRequest(
        module="shelve",
        title="add sizes()",
        imports="""
            import sys
            import decimal
        """,
        code="""
            def sizes(shelf):
                return { key:decimal.Decimal( sys.getsizeof(value) ) for key,value in shelf.items( ) }
        """,
        checks=(ISORT, BLACK),
        cycles=2,
    ),
    PullRequest(
        module="copy",
        title="add copy_all()",
        imports="from typing import List",
        code="""
            def copy_all(items: List[object], twice: List[object]) -> List[object]:
                return [copy(item) for item in items + twice]
        """,
        checks=(OLD_TYPES, UNUSED),
        cycles=2,
    ),
    PullRequest(
        module="filecmp",
        title="add same()",
        code="""
            def same(a, b, report=None):
                if report != None:
                    report(f"comparing")
                return cmp(a, b, shallow=False) == True and report == None
        """,
        checks=(EMPTY_F, COMPARED),
        cycles=2,
    ),
)

THREE_CYCLES = (
    PullRequest(
        module="zipapp",
        title="add members()",
        imports="from typing import Dict",
        code="""
            def members(sizes: Dict[str, int], extra: Dict[str, int]) -> Dict[str, int]:
                return {name:size for name,size in {**sizes,**extra}.items( )
                    if size>0}
        """,
        checks=(OLD_TYPES, UNUSED, BLACK),
        cycles=3,
    ),
    PullRequest(
        module="tabnanny",
        title="add summary()",
        imports="""
            import string
            import collections
        """,
        code="""
            def summary( lines ):
                counts = collections.Counter( line[:1] for line in lines if line != None )
                return { key:count for key,count in counts.items( ) if key in string.whitespace }
        """,
        checks=(COMPARED, ISORT, BLACK),
        cycles=3,
    ),
    PullRequest(
        module="timeit",
        title="add label()",
        imports="""
            import uuid
            import platform
            import functools
        """,
        code="""
            @functools.cache
            def label():
                kind = f"python"
                return kind + platform.python_version()
        """,
        checks=(EMPTY_F, UNUSED, ISORT),
        cycles=3,
    ),
)
