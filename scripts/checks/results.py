#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""usage: results.py KUNIT-DIR FILE
       results.py --ktap FILE

Prints "pass|fail|skip<TAB>ID" for each result in a KTAP or TAP file, read by
the kernel's own parser in tools/testing/kunit. ID is the path of test names.
--ktap prints the file itself as that parser needs it.
"""
import re
import sys

VERSION = re.compile(r' *K?TAP version \d+$')
PLAN = re.compile(r' *1\.\.\d+')
CONTROL = re.compile(r'[\x00-\x08\x0b-\x1f\ufffe\uffff]')
RESULT = re.compile(r' *(?:not )?ok \d+ ?(?:- )?([^#]*?)(?: # .*)?$')


def ordered(lines):
    """The lines as the kernel's parser needs them.

    It wants the plan first, where TAP may have it last. It wants a version line,
    which writers of old TAP leave out: their results would be taken for those of
    the test around them. It loses its place in a stream that broke off unless a
    "# Subtest" line names the test. A number left out (bats does so when a file's
    set-up fails) would condemn all that come after it: they are counted anew, and
    the plan shows what is missing.
    """
    out = []
    open_tests = []     # of each: indentation, place in out, plan, results

    def close(name):
        indent, place, plan, results = open_tests.pop()
        if not results and not plan:
            # Skipped, or it fell over at once: the result line says which.
            del out[place]
            return
        # One more than came: the parser then reports what is missing. KTAP may
        # do without a plan (parameters of a KUnit test): its name ends it.
        if not plan and not (name and 'KTAP' in out[place]):
            plan = f'1..{results + 1}'
        head = [text for text in (name and f'# Subtest: {name}', plan) if text]
        out[place + 1:place + 1] = [' ' * indent + text for text in head]

    for line in lines:
        line = line.rstrip()
        indent = len(line) - len(line.lstrip(' '))
        result = RESULT.match(line)
        plan = PLAN.match(line)
        if (plan or result) and open_tests and indent > open_tests[-1][0]:
            open_tests.append([indent, len(out), None, 0])
            out.append(' ' * indent + 'TAP version 13')
        if VERSION.match(line):
            open_tests.append([indent, len(out), None, 0])
        elif plan and open_tests and open_tests[-1][0] == indent:
            open_tests[-1][2] = line.strip()
            continue
        elif line.strip().startswith('# Subtest:'):
            continue
        elif result:
            while len(open_tests) > 1 and open_tests[-1][0] > indent:
                close(result[1].strip())
            if open_tests:
                open_tests[-1][3] += 1
                line = re.sub(r'ok \d+', f'ok {open_tests[-1][3]}', line, count=1)
        out.append(line)
    while open_tests:
        close('')
    return out


def walk(test, path):
    """Print the leaves, and any test that fails though no part of it does."""
    outcomes = {TestStatus.SUCCESS: 'pass', TestStatus.SKIPPED: 'skip'}
    parts_fail = False
    for sub in test.subtests:
        parts_fail |= walk(sub, path + [sub.name.strip() or 'missing'])
    outcome = outcomes.get(test.status, 'fail')
    # Lines that miss or contradict the plan are errors of a test.
    failed = outcome == 'fail' or test.counts.errors > 0
    if not test.subtests or (failed and not parts_fail):
        print('fail' if failed else outcome, '/'.join(path) or 'results', sep='\t')
    return failed


with open(sys.argv[2], encoding='utf-8', errors='replace') as stream:
    ktap = ordered(stream)
if sys.argv[1] == '--ktap':
    # A report in XML may not hold what a console's colours are made of.
    print(*(CONTROL.sub('?', text) for text in ktap), sep='\n')
else:
    sys.path.insert(0, sys.argv[1])
    import kunit_parser
    from kunit_parser import TestStatus
    from kunit_printer import Printer
    walk(kunit_parser.parse_run_tests(ktap, Printer(print=False)), [])
