package tui

import (
	"errors"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func asked(t *testing.T, m *Model, key string, ref job.Ref) {
	t.Helper()
	if cmd := m.press(key, textOf(key)); cmd == nil {
		t.Fatalf("%s asks for nothing", key)
	}
	m.Update(resolved{generation: m.acts, act: Act{Verb: m.confirm.act.Verb, Ref: ref}})
}

var ref = job.Ref{Job: "pageviews", Number: 2}

func TestAnActIsDoneOnlyAfterTheJobsNameWasTyped(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
	asked(t, m, "p", ref)
	shows(t, m, "promote pageviews v2", "in place of v1", "kappactl promote pageviews v2", "type pageviews to confirm")
	if m.press("enter", "") != nil || m.confirm.stage != stageTyping {
		t.Fatal("done without a name")
	}
	m.pressAll(strings.Split("pageview", "")...)
	if m.press("enter", "") != nil {
		t.Fatal("done with half a name")
	}
	shows(t, m, "that is not the job's name")
	m.pressAll("s")
	hides(t, m, "that is not the job's name")
	if m.press("enter", "") == nil || m.confirm.stage != stageDoing {
		t.Fatal("not done")
	}
	m.Update(acted{generation: m.acts, answer: ledger.Answer{Reason: reason.Refused("pageviews/v2 is live"), Next: "kappactl rollback pageviews"}})
	shows(t, m, "✓ pageviews/v2 is live", "kappactl rollback pageviews")
	if m.pressAll("enter"); m.confirm != nil {
		t.Error("the answer stays")
	}
}

func TestEveryActShowsItsCommandAndWhatItDoes(t *testing.T) {
	for key, want := range map[string][]string{
		"p":     {"kappactl promote pageviews v2", "in one transaction"},
		"r":     {"kappactl rollback pageviews v2", "in one transaction"},
		"a":     {"kappactl abort pageviews v2", "drops its table"},
		"space": {"kappactl pause pageviews v2", "keeps its positions"},
	} {
		m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
		asked(t, m, key, ref)
		shows(t, m, want...)
	}
	v := catchingUpVersion(2)
	v.Paused = true
	m := deployment(t, detail(v, liveVersion(2)), Options{})
	shows(t, m, "space resume")
	asked(t, m, "space", ref)
	shows(t, m, "kappactl resume pageviews v2")
}

func TestARefusalSaysWhyAndWhatIsNext(t *testing.T) {
	m := deployment(t, detail(liveVersion(2)), Options{})
	m.press("r", "r")
	m.Update(resolved{generation: m.acts, err: &job.Refusal{Code: job.ExitConflict, Cause: "job \"pageviews\" has no version to roll back.", Next: "kappactl status pageviews"}})
	shows(t, m, "✗ job \"pageviews\" has no version to roll back.", "kappactl status pageviews")
	m.pressAll("esc")
	asked(t, m, "p", ref)
	m.pressAll(append(strings.Split("pageviews", ""), "enter")...)
	m.Update(acted{generation: m.acts, answer: ledger.Answer{Code: job.ExitChecks, Reason: reason.Refused("pageviews/v2 is not promoted:\ncheck \"x\": fail: 3 rows"), Next: "correct the cause"}})
	shows(t, m, "✗ pageviews/v2 is not promoted:\n    check \"x\": fail: 3 rows\n", "correct the cause")
}

func TestAnActThatCannotBeAskedForSaysSo(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2)), Options{})
	asked(t, m, "a", ref)
	m.pressAll(append(strings.Split("pageviews", ""), "enter")...)
	m.Update(acted{generation: m.acts, err: errors.New("no agent is alive: nothing would happen")})
	shows(t, m, "✗ no agent is alive")
}

func TestAVersionThatWasChosenIsTheOneActedOn(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
	m.pressAll("l", "l")
	if m.press("a", "a") != nil || m.confirm.stage != stageTyping || m.confirm.act.Ref != ref {
		t.Errorf("act %+v", m.confirm.act)
	}
	m.pressAll("esc", "l")
	m.press("a", "a")
	if m.confirm.act.Ref.Number != 1 {
		t.Errorf("act %+v", m.confirm.act)
	}
}

func TestRepliesToAnActThatWasLeftAreDropped(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
	m.press("p", "p")
	late := resolved{generation: m.acts, act: Act{Verb: ledger.Promote, Ref: ref}}
	m.pressAll("esc")
	m.press("a", "a")
	if m.Update(late); m.confirm.stage != stageResolving || m.confirm.act.Verb != ledger.Abort {
		t.Errorf("took %+v", m.confirm.act)
	}
	m.Update(resolved{generation: m.acts, act: Act{Verb: ledger.Abort, Ref: ref}})
	m.pressAll(append(strings.Split("pageviews", ""), "enter")...)
	doing := m.acts
	m.pressAll("esc")
	shows(t, m, "an agent still answers the request: kappactl abort pageviews v2")
	m.press("p", "p")
	if m.Update(acted{generation: doing, answer: ledger.Answer{Reason: reason.Refused("aborted")}}); m.confirm.stage != stageResolving {
		t.Error("the answer to another act was shown")
	}
}

func TestPastedNamesAreTakenOnOneLine(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
	asked(t, m, "p", ref)
	m.paste("page\x1b[31mviews\n")
	if got := m.confirm.typed.text; strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("typed %q", got)
	}
	m.pressAll("ctrl+u")
	m.paste("pageviews\n")
	if m.press("enter", "") == nil {
		t.Errorf("typed %q is not the name", m.confirm.typed.text)
	}
}

func TestThePromptTakesBackWholeCharacters(t *testing.T) {
	var p prompt
	for _, k := range []string{"a", "é", "👩‍🚀", "日"} {
		p.press(k, k)
	}
	for _, want := range []string{"aé👩‍🚀", "aé", "a", "", ""} {
		if p.press("backspace", ""); p.text != want {
			t.Errorf("text %q, want %q", p.text, want)
		}
	}
	p.paste("two words")
	if p.press("ctrl+w", ""); p.text != "two " {
		t.Errorf("text %q", p.text)
	}
	if p.press("f5", "") {
		t.Error("f5 is text")
	}
}

func TestAProtectedContextIsNamedBeforeReadersCouldNotice(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{Protected: "prod"})
	asked(t, m, "p", ref)
	m.pressAll(append(strings.Split("pageviews", ""), "enter")...)
	shows(t, m, "the context is protected: type prod to confirm")
	if m.press("enter", "") != nil || m.confirm.stage != stageTyping {
		t.Fatal("done without the context's name")
	}
	shows(t, m, "that is not the context's name")
	m.pressAll(strings.Split("prod", "")...)
	if m.press("enter", "") == nil || m.confirm.stage != stageDoing {
		t.Fatal("not done")
	}
	m.pressAll("esc")
	asked(t, m, "a", ref) // readers do not notice an abort
	m.pressAll(strings.Split("pageviews", "")...)
	if m.press("enter", "") == nil || m.confirm.stage != stageDoing {
		t.Error("an abort asks for the context's name")
	}
	m.pressAll("esc", "?")
	shows(t, m, "then for the context's")
}
