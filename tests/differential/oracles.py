"""The oracles: for many conditions at once, which files does each door keep, and which would it have to?

truth       one job tells every condition on every row, without pruning; with two trees, on every row of either copy
TLP         p, NOT p and p IS NULL: each keeps the files of its rows
PQS         conditions made true for a random row, joined by AND: its file is kept
CERT        p AND q is sound as p is, and keeps no file that p skips (else a warning: only speed is lost)
plans       queries of more than WHERE: the files that they open, and the values that they take from the index
rows        whole queries, run with and without: the same rows, or the same error (NoREC among them)
values      a rewritten table holds what its source did
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar

import hedgerow as hr
from tests.differential.cases import RAW_ERROR, Case, Failed, Refused, forget, is_fair, namespace, phase_lines, run
from tests.differential.conditions import Known, Maker, both, compound, is_null, negated, rectified
from tests.differential.evaluated_rows import evaluated, gist
from tests.differential.planned import Asked, some_asked
from tests.differential.queries import ORDERED, Question, a_question, texts_of, union_of
from tests.differential.ranked import is_right, text_of
from tests.differential.sessions import EVERY, Sessions
from tests.differential.tally import Finding, Tally
from tests.differential.worlds import Phase, Plan, a_phase, sources

ROUTE_TAKES_ARGS = "args" in inspect.signature(hr.route).parameters
ONLY_BY_THEMSELVES = ("immediate",)  # no subquery
ALONE = 0.03  # the share of whole queries that are asked by themselves, which takes six times as long
MANY_QUERIES = {"queries": 16, "sets": 30, "foreign": 16}  # whole queries in each phase, by the kind of world
ONLY_FORMS = {"sets": ("set", "set", "ctes"), "foreign": ("rows", "rows", "counts", "distinct")}  # of those queries
T = TypeVar("T")
Batch = tuple[int, int]  # how many conditions one plan holds, for attach and for route


@dataclass
class World:
    """A plan that stands, and the questions to it."""

    sessions: Sessions
    plan: Plan
    random: Random
    tally: Tally
    kind: str = "any"
    batch: Batch = (40, 40)
    whole: int = 4  # whole queries in each phase
    forms: tuple[str, ...] = ()  # of whole queries; by default all that suit the kind
    atoms: int = 40  # conditions in each phase
    size: float = 1.0  # how many combinations of them, as a share of the usual number; 0: none
    planned: int = 0  # queries of more than WHERE in each phase that are planned, not run
    names: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    wrong: list[tuple[tuple[str, Phase | None], str]] = field(default_factory=list)  # doors with conditions
    own: int = 0  # rows of the table itself, where those of its second copy come after them

    def run(self, phases: int = 2, budget: int = 1 << 30) -> None:
        self.names = namespace(self.sessions)
        self.sessions.configure({}, [])
        try:
            if not self._made():
                return
            for number in range(phases):
                if self.tally.total < budget:
                    self._ask(number)
        finally:
            forget(self.sessions, self.names, self.plan, self.phases)

    def _made(self) -> bool:
        """Make the table, and compare what it holds with its source."""
        case = Case(self.plan, "apply")
        key = ("values", "apply", self.plan.format)
        try:
            run([line for line in case.lines() if line not in self.plan.history], self.names)
            self.tally.compare(key, vacuous=False)
            exec(
                case.verdict()
                .replace("print(", "(lambda *_: None)(")
                .replace(repr(self.plan.read_format), repr(self.plan.format)),
                self.names,
            )
            if self.names["different"]:
                self._found(case, "values", "the rewritten table holds other values", key, self._stored())
            run(self.plan.history, self.names)
        except Refused as refused:
            self.tally.notes[f"refused by Spark: {gist(str(refused))}"] += 1
            return False
        except Failed as failed:
            self.tally.notes[f"not laid out: {type(failed.error).__name__}: {str(failed.error)[-110:]}"] += 1
            if is_fair(failed.error):
                return False
            self.tally.compare(key, vacuous=False)
            message = f"{failed.line.split('(')[0]}: {type(failed.error).__name__}: {str(failed.error)[:300]}"
            self._found(case, "values", message, key, gist(message))
            return False
        except Exception as error:
            self._found(
                case, "values", f"the rewritten table cannot be read: {str(error)[:300]}", key, gist(str(error))
            )
            return False
        return True

    def _stored(self) -> str:
        odd = [c.name.lower() for c in self.plan.columns if not re.fullmatch(r"[cz]\d", c.name)]
        return " ".join([*odd, *(k for k in self.plan.write if k.startswith("spark.sql.parquet."))])

    # --- one phase ---

    def _ask(self, number: int) -> None:
        phase = a_phase(self.random, self.plan, self.kind, number)
        if self.phases:
            self.sessions.configure({}, list(self.phases[-1].settings))
        self.phases.append(phase)
        try:
            run(phase_lines(phase), self.names)
            self.rel = phase.relation.sql.replace("{table}", self.names["table_glob"])
            columns = {n.lower(): n for n in self.sessions.plain.sql(f"SELECT * FROM {self.rel}").columns}
        except Exception as error:
            self.tally.notes[f"phase refused by Spark: {gist(str(error))}"] += 1
            return
        self.tally.kinds[f"{phase.relation.name} ({self.plan.read_format})"] += 1
        known_as = {c.name: columns.get(c.name.lower()) for c in self.plan.columns}
        columns_ = tuple(replace(c, name=str(known_as[c.name])) for c in self.plan.columns if known_as[c.name])
        seen = (*sources(columns_), *phase.relation.more)
        if not seen:
            return
        favourites = tuple((s.sql, s.group) for s in phase.relation.more) + self.plan.terms
        maker = Maker(self.random, seen, tuple(v[2] for v in phase.variables), favourites)
        wanted = (
            [self._condition(maker) for _ in range(self.atoms)] + self._exact(maker) + self._learned() + maker.days()
        )
        terms = self._ordered(maker) if self.planned else {}
        rows = evaluated(self.sessions.plain, self.rel, wanted, terms, self.tally.notes)
        files, known = list(rows.files), list(rows.known)
        if self.plan.trees > 1:
            files, known = self._with_copy(files, known)
        if self.size and known and len(set(files)) > 1 and self.kind not in MANY_QUERIES:
            self._decide(phase, files, known)
        if self.planned and files:
            self._plan(phase, self._resolved(), files, some_asked(self.random, rows, self.planned))
        plain, forms = [k.sql for k in known] or ["true"], self.forms or ONLY_FORMS.get(self.kind, ())
        whole = max(self.whole, MANY_QUERIES.get(self.kind, 0))
        self._rows(phase, [a_question(self.random, maker, plain, forms) for _ in range(whole)])

    def _with_copy(self, files: list[str], known: list[Known]) -> tuple[list[str], list[Known]]:
        """Add the rows of the second copy, if it has all rows; `self.own` is the number of rows before them."""
        copy = f"parquet.`{self.names['table_glob']}/_hedgerow/replicas/tree-2`"
        rows = evaluated(self.sessions.plain, copy, [k.sql for k in known], {}, self.tally.notes)
        self.own = len(files)
        if len(rows.files) != self.own:
            self.tally.notes["phases with a stale copy"] += 1
            return files, known
        truths = {k.sql: k.truth for k in rows.known}
        both_known = [Known(k.sql, k.truth + truths[k.sql]) for k in known if k.sql in truths]
        return files + list(rows.files), both_known

    def _condition(self, maker: Maker) -> str:
        found = maker.atom()
        return maker.decorated(found) if self.random.random() < (0.4 if self.kind == "texts" else 0.06) else found

    def _learned(self) -> list[str]:
        """Some of the conditions that the layout was learned from, which the index notes."""
        conditions = [text.split(" WHERE ", 1)[1] for text in self.plan.workload]
        return self.random.sample(conditions, min(6, len(conditions)))

    def _exact(self, maker: Maker) -> list[str]:
        """Conditions about values that some row has."""
        terms = self.random.sample(maker.favourites, min(5, len(maker.favourites)))
        terms += [(s.sql, s.group) for s in self.random.sample(maker.sources, min(3, len(maker.sources)))]
        found = []
        for term, group in terms:
            try:
                values = self.sessions.plain.sql(
                    f"SELECT DISTINCT CAST({term} AS STRING) AS v FROM {self.rel} WHERE ({term}) IS NOT NULL ORDER BY v LIMIT 40"
                ).collect()
            except Exception:
                continue
            for (value,) in self.random.sample(values, min(3, len(values))):
                found.append(maker.exact(term, group, value))
        return [c for c in found if c]

    def _ordered(self, maker: Maker) -> dict[str, str]:
        """Terms whose values have an order, with their groups."""
        found = (*((source.sql, source.group) for source in maker.sources), *maker.favourites)
        return {term: group for term, group in found if group in ORDERED}

    @staticmethod
    def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
        for at in range(0, len(items), size):
            yield items[at : at + size]

    # --- decisions ---

    def _decide(self, phase: Phase, files: list[str], known: list[Known]) -> None:
        plans: list[tuple[str, Known]] = []
        for p in known:
            plans += [("TLP", p), ("TLP", negated(p)), ("TLP", is_null(p))]
        for _ in range(round(90 * self.size)):
            row = self.random.randrange(len(files))
            parts = [rectified(p, row) for p in self.random.choices(known, k=8)]
            parts = sorted(parts, key=lambda p: p.truth.count(True))[: self.random.choice((1, 2, 2, 3))]
            found = parts[0]
            for part in parts[1:]:
                found = both(found, part)
            plans.append(("PQS", found))
        for _ in range(round(60 * self.size)):
            p = compound(self.random, known)
            plans += [("CERT", p), ("CERT", both(p, self.random.choice(known)))]
        for door in self._doors(phase):
            some = plans if door != "read" else self.random.sample(plans, min(24, len(plans)))
            if phase.relation.name == "path" and door != "read":  # each mention of a path lists its files anew
                some = self.random.sample(plans, min(len(plans), 50))
            if self.plan.read_format == "delta":
                some = self.random.sample(plans, min(len(plans), 24 if door != "read" else 8))
            self._compared(phase, door, files, some)

    def _doors(self, phase: Phase) -> Sequence[str]:
        return ("attach", "route", "read") if phase.relation.name in ("path", "read") else ("attach", "route")

    def _compared(self, phase: Phase, door: str, files: list[str], plans: list[tuple[str, Known]]) -> None:
        copies = [range(self.own), range(self.own, len(files))] if self.own else [range(len(files))]
        everything = set(files)
        whole = [{files[i] for i in rows} for rows in copies if rows]
        kept = self.kept(door, [k.sql for _, k in plans])
        before: tuple[str, set[str]] | None = None
        for (oracle, p), opened in zip(plans, kept, strict=True):
            key = (oracle, door, self.plan.read_format)
            if isinstance(opened, str):
                self.tally.compare(key, vacuous=True)
                self._failed(phase, door, oracle, p, opened, key)
                continue
            opened = everything if EVERY in opened else opened
            self.tally.compare(key, vacuous=any(files_of_copy <= opened for files_of_copy in whole))
            if all(any(p.truth[i] and files[i] not in opened for i in rows) for rows in copies if rows):
                self._unsound(phase, door, oracle, p, key)
            if len(whole) > 1:
                self.tally.kinds["decisions for the second copy"] += not opened.isdisjoint(whole[1])
            if oracle == "CERT" and not self.own:
                if before is not None and p.sql.startswith(f"({before[0]}) AND ") and not opened <= before[1]:
                    self.tally.notes[f"CERT: a stricter condition keeps more ({door})"] += 1
                before = p.sql, opened

    def kept(self, door: str, conditions: Sequence[str]) -> list[set[str] | str]:
        """For each condition the files that the door opens; a text where it raises."""
        size = {"attach": self.batch[0], "route": 10 if self.kind == "texts" else self.batch[1], "read": 1}[door]
        found: list[set[str] | str] = []
        for part in self._parts(conditions, size):
            found += self._kept(door, part)
        return found

    def _kept(self, door: str, part: Sequence[str]) -> list[set[str] | str]:
        try:
            if door == "read":
                opened = self.sessions.opened(self._table().read(where=part[0]))
            else:
                ask = self.door(door)
                opened = self.sessions.opened(
                    ask(
                        "\nUNION ALL\n".join(
                            f"SELECT {i} AS mark__ FROM {self.rel} WHERE {p}\n" for i, p in enumerate(part)
                        )
                    )
                )
        except Exception as error:
            if len(part) == 1:
                return [f"{type(error).__name__}: {str(error)[:300]}"]
            half = len(part) // 2
            return [*self._kept(door, part[:half]), *self._kept(door, part[half:])]
        if -1 in opened:  # a scan whose branch is not known
            opened = {i: opened[-1] | opened.get(i, set()) for i in range(len(part))}
        return [opened.get(i, set()) for i in range(len(part))]

    def _table(self) -> Any:
        return hr.table(self.sessions.routed, self.names["table"])

    def door(self, door: str) -> Callable[[str], Any]:
        match door:
            case "attach":
                return self.sessions.attached.sql
            case "route":
                return lambda sql: hr.route(self.sessions.routed, sql)
            case "read":
                return lambda sql: self._table().read(where=sql.split(" WHERE ", 1)[1])
        return self.sessions.plain.sql

    # --- what looks wrong, asked for real ---

    def _failed(self, phase: Phase, door: str, oracle: str, p: Known, message: str, key: tuple[str, str, str]) -> None:
        """Plain Spark answers the same question, or it would not be among the known ones.

        Only `read` may refuse, in a sentence of ours: it is asked of a table by name, and such a table must be ours.
        """
        if door == "read" and message.startswith("HedgerowError: ") and not RAW_ERROR.search(message[15:]):
            self.tally.notes[f"read refuses: {message[-60:]}"] += 1
            return
        case = Case(self.plan, door, phase, f"SELECT * FROM {{t}} WHERE {p.sql}")
        if self._differs(case):
            self._found(case, oracle, message, key, f"{door} raises {gist(message)}")

    def _unsound(self, phase: Phase, door: str, oracle: str, p: Known, key: tuple[str, str, str]) -> None:
        case = Case(self.plan, door, phase, f"SELECT * FROM {{t}} WHERE {p.sql}")
        if not self._differs(case):
            self.tally.notes["unsound decisions that running the query did not confirm"] += 1
            return
        self._found(case, oracle, "a file with matching rows is skipped", key)

    def _differs(self, case: Case) -> bool:
        assert case.phase
        sql = case.sql.replace("{t}", self.rel)
        return answer(lambda: self.sessions.plain.sql(sql)) != answer(lambda: self.door(case.door)(sql))

    def _found(self, case: Case, oracle: str, message: str, key: tuple[str, str, str], signature: str = "") -> None:
        from tests.differential.shrink import shorter

        if not signature:
            known = [bad for where, bad in self.wrong if where == (case.door, case.phase)]
            if len(known) > 7 or any(bad in case.sql for bad in known):
                self.tally.different[key] += 1
                return
            case = shorter(case, self._differs, 12)
            self.wrong.append(((case.door, case.phase), case.sql.split(" WHERE ", 1)[-1]))
            signature = f"{case.door} {signed(case)}"
        finding = Finding(case, oracle, message, signature, self.tally.total)
        if self.tally.add(finding, key):
            print(
                f"  DIFFERENCE after {self.tally.total:,} [{oracle}, {case.door}, {self.plan.format}, world {self.plan.number}] {message[:160]}",
                flush=True,
            )
            if case.phase:
                print(
                    f"    {case.sql[:300]!r}\n    over {case.phase.relation.name} {case.phase.relation.once[-1:]} set {dict(case.phase.settings)} written {dict(self.plan.write)}",
                    flush=True,
                )

    # --- planned queries ---

    def _plan(self, phase: Phase, name: str, files: list[str], asked: Sequence[Asked]) -> None:
        """Judge plans. Queries that look wrong are run, and those whose plans depend on the answer of a subquery."""
        key = ("plans", "attach", self.plan.read_format)
        to_run = []
        for one in asked:
            try:
                plan = self.sessions.planned(one.question.sql.replace("{t}", name))
            except Exception as error:
                self.tally.notes[f"plans that raise: {gist(str(error))}"] += 1
                to_run.append(one.question)
                continue
            self.tally.compare(key, vacuous=not plan.values and plan.opened >= set(files))
            means = [scan.means for scan in hr.last_query(self.sessions.attached)] if plan.opened else ["values only"]
            self.tally.kinds[f"planned: {one.question.kind} by {', '.join(means)}"] += 1
            if plan.has_subquery and self.random.random() < 0.05:  # its threshold is known only when it runs
                to_run.append(one.question)
            if not one.judge(files, plan):
                self._confirm(phase, one.question, key)
        self._rows(phase, to_run)

    def _resolved(self) -> str:
        """Give the table a name in the attached session under which Spark need not list its files for each query."""
        name = f"planned_{self.plan.number}_{len(self.phases)}"
        frame = self.sessions.attached.sql(f"SELECT * FROM {self.rel}")._jdf
        if self.plan.read_format == "delta":  # it runs a job for each query to choose files by itself
            plan = self.sessions.plain.sql(f"SELECT * FROM {self.rel}")._jdf.queryExecution().optimizedPlan()
            jvm: Any = self.sessions.plain._jvm
            frame = jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.sessions.attached._jsparkSession, plan)
        frame.createOrReplaceTempView(name)
        return name

    def _confirm(self, phase: Phase, question: Question, key: tuple[str, str, str]) -> None:
        expected = self._answer("plain", question.sql, question.args)
        found = self._answer("attach", question.sql, question.args)
        if isinstance(expected, str) or self._is_fine(question, found, expected):
            self.tally.notes["wrong plans that running the query did not confirm"] += 1
            print(f"  not confirmed in world {self.plan.number} {phase.relation.name}: {question.sql}", flush=True)
            return
        case = Case(self.plan, "attach", phase, question.sql, question.args, question.ranked)
        self._found(case, "plans", f"{question.kind}: another answer", key, f"attach plan of {question.kind}")

    # --- whole queries ---

    def _rows(self, phase: Phase, questions: Sequence[Question]) -> None:
        """Compare answers: some questions are asked by themselves, the others many in one plan, which is faster."""
        single = [q for q in questions if q.args or q.kind in ONLY_BY_THEMSELVES or self.random.random() < ALONE]
        together = [replace(q, **texts_of(q)) for q in questions if q not in single]
        for part in (*([q] for q in single), *self._parts(together, self.batch[0] // 2)):
            part = self._accepted(part)
            expected = self._answers("plain", part)
            self.tally.notes["queries that raise"] += sum(isinstance(of, str) for of in expected)
            known = [(q, of) for q, of in zip(part, expected, strict=True) if not isinstance(of, str)]
            for door in ("attach",) if part and part[0].args and not ROUTE_TAKES_ARGS else ("attach", "route"):
                self._compare_answers(phase, door, known)

    def _accepted(self, questions: Sequence[Question]) -> Sequence[Question]:
        """Return the questions, without those that Spark refuses before it runs them: one makes a plan of many fail."""

        def is_refused(some: Sequence[Question]) -> bool:
            try:
                self.sessions.plain.sql(self._in_one(some))
            except Exception:
                return True
            return False

        if len(questions) < 2 or not is_refused(questions):
            return questions
        return [question for question in questions if not is_refused([question])]

    def _in_one(self, questions: Sequence[Question]) -> str:
        return union_of([question.sql for question in questions]).replace("{t}", self.rel)

    def _compare_answers(self, phase: Phase, door: str, known: list[tuple[Question, Counter[str]]]) -> None:
        answers = self._answers(door, [q for q, _ in known])
        if known and door == "attach":
            self.tally.kinds.update(f"scan by {scan.means}" for scan in hr.last_query(self.sessions.attached))
        for (question, right), found in zip(known, answers, strict=True):
            self._judge(phase, door, question, right, found, [q.sql for q, _ in known])

    def _answers(self, door: str, questions: Sequence[Question]) -> list[Counter[str] | str]:
        """Return the rows of each question, or its error."""
        if len(questions) < 2:
            return [self._answer(door, question.sql, question.args) for question in questions]
        answers = [Counter(["['row__']"]) for _ in questions]  # the names of the columns, as `answer` notes them
        try:
            for mark, text in self.door(door)(self._in_one(questions)).collect():
                answers[mark][text_of(text)] += 1
        except Exception:
            half = len(questions) // 2
            return self._answers(door, questions[:half]) + self._answers(door, questions[half:])
        return [*answers]

    def _answer(self, door: str, sql: str, args: tuple[tuple[str, object], ...]) -> Counter[str] | str:
        ask, text = self.door(door), sql.replace("{t}", self.rel)
        return answer(lambda: ask(text, args=dict(args)) if args else ask(text))

    def _judge(
        self,
        phase: Phase,
        door: str,
        question: Question,
        expected: Counter[str],
        found: Counter[str] | str,
        together: Sequence[str],
    ) -> None:
        key = ("rows", door, self.plan.read_format)
        self.tally.kinds[f"query: {question.kind.strip()}"] += 1
        self.tally.compare(key, vacuous=False)
        if self._is_fine(question, found, expected):
            return
        case = Case(self.plan, door, phase, question.sql, question.args, question.ranked)
        message = (
            found
            if isinstance(found, str)
            else f"{question.kind}: {sum(found.values())} rows instead of {sum(expected.values())}"
        )
        again = self._answer(door, question.sql, question.args)
        if self._is_right(question, again, expected):
            case, message = replace(case, sql=union_of(together), ranked=""), f"in one plan with others, {message}"
        of_error = gist(found) if isinstance(found, str) else ""
        self._found(case, "rows", message, key, f"{door} query {question.kind} {of_error}")

    def _is_fine(self, question: Question, found: Counter[str] | str, expected: Counter[str]) -> bool:
        """True if an answer is right, or if Spark by itself has several."""
        if self._is_right(question, found, expected):
            return True
        is_fixed = self._answer("plain", question.sql, question.args) == expected
        self.tally.notes["queries without a fixed answer"] += not is_fixed
        return not is_fixed

    def _is_right(self, question: Question, found: Counter[str] | str, expected: Counter[str]) -> bool:
        if found == expected or not question.ranked or isinstance(found, str):
            return found == expected
        columns = {row for row in expected if row.startswith("[")}
        if columns - set(found):
            return False
        rows = [Counter({row: n for row, n in of.items() if row not in columns}) for of in (found, expected)]
        return is_right(*rows, self.ranked(question))

    def ranked(self, question: Question) -> list[Any]:
        """Return all rows that the question may have as answer, with their ranks."""
        return list(self.sessions.plain.sql(question.ranked.replace("{t}", self.rel)).collect())


def answer(run: Callable[[], Any]) -> Counter[str] | str:
    """The rows, in no order, with the columns' names; or the kind of error."""
    try:
        frame = run()
        return Counter([*map(str, frame.collect()), str(frame.columns)])
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def signed(case: Case) -> str:
    """The words of a condition without its columns and values, and how the table is named."""
    assert case.phase
    text = re.sub(r"'(?:[^'\\]|\\.)*'", "'", case.sql.split("WHERE", 1)[-1])
    words = re.findall(r"\b[a-z_]{3,}(?=\()|\b[A-Z_]{4,}\b|\\\n|--|<=>|/\*", text)
    return " ".join([case.phase.relation.name, *sorted({repr(w).strip("'") for w in words})[:8]])
