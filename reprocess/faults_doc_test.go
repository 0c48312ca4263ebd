package reprocess

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

const (
	reliabilityPage = "../docs/reliability.md"
	faultsBegin     = "<!-- the kinds of faults: written by make docs -->\n"
	faultsEnd       = "<!-- end of the kinds of faults -->\n"
)

// describedFaults are the kinds of faults, with what happened and the tests that show what clears them.
var describedFaults = []struct {
	kind  job.FaultKind
	what  string
	tests []string // file:function
}{
	{job.FaultGap, "the log no longer has offsets that are needed; over when the archive that the job reads has them", []string{"reprocess/resume_test.go:" + everyFault}},
	{job.FaultRecreated, "the topic was deleted and created again", []string{"speedlayer/passing_test.go:" + passingFault}},
	{job.FaultMissing, "the brokers do not know the topic", []string{"speedlayer/passing_test.go:" + passingFault}},
	{job.FaultQuery, "the query fails over the records, and no single one is to blame", []string{"reprocess/resume_test.go:" + everyFault}},
	{job.FaultRecord, "a record cannot be processed, and the job has `on_error: fail`", []string{"reprocess/resume_test.go:" + everyFault}},
	{job.FaultTooLarge, "a record is larger than a fetch may be", []string{"reprocess/resume_test.go:" + everyFault}},
	{job.FaultArchive, "a file of the archive is damaged or missing", []string{"reprocess/resume_test.go:" + everyFault}},
	{
		job.FaultTable, "the version's table, or its index, is not as it was created",
		[]string{"speedlayer/trouble_test.go:TestATableThatIsNotAsItWasCreatedStopsItsPartitionsUntilItIsRestored"},
	},
	{
		job.FaultEpochs, "positions of a version of mode lambda have several epochs, so its rows would have several, too; kappactl never writes that",
		[]string{"speedlayer/lambda_test.go:TestACommitOverTwoEpochsStops"},
	},
	{
		job.FaultProgram, "the program of the job ends again and again; over when it keeps running",
		[]string{"internal/programs/runner_test.go:TestAProgramThatEndsAgainAndAgainIsAFaultWithItsLastWords"},
	},
}

const (
	everyFault   = "TestEveryFaultOfALiveVersionHasACommandToTryAgainAndOneToSkip"
	passingFault = "TestAFaultThatSaysWhatTheBrokersSayEndsWithIt"
)

// faultTable is a row for each kind, with the way out that status prints.
func faultTable(t *testing.T) string {
	t.Helper()
	out := "| fault | what happened | a live or standby version | a candidate | tests |\n| --- | --- | --- | --- | --- |\n"
	for _, d := range describedFaults {
		way := ledger.WayOut(job.Ref{Job: "orders", Number: 3}, job.Partition{Topic: "orders", ID: 2}, job.Fault{Kind: d.kind, From: 7, To: 8})
		candidate := "waits"
		if readiness.Fatal(d.kind) {
			candidate = "fails"
		}
		var tests []string
		for _, place := range d.tests {
			file, name, _ := strings.Cut(place, ":")
			text, err := os.ReadFile("../" + file)
			if err != nil || !strings.Contains(string(text), "func "+name+"(") {
				t.Errorf("%s: no test %s (%v)", d.kind, place, err)
			}
			tests = append(tests, fmt.Sprintf("[%s](../%s)", file, file))
		}
		out += fmt.Sprintf("| `%s` | %s | %s | %s, exit code %d | %s |\n", d.kind, d.what, way.Text(), candidate, readiness.ExitCode(d.kind),
			strings.Join(tests, ", "))
	}
	return out
}

// TestFaultsInSync compares the table of docs/reliability.md with the kinds of faults; -update writes it.
func TestFaultsInSync(t *testing.T) {
	page, err := os.ReadFile(reliabilityPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), faultsBegin)
	_, after, ended := strings.Cut(rest, faultsEnd)
	if !found || !ended {
		t.Fatalf("%s has no marks around its table of faults", reliabilityPage)
	}
	want := before + faultsBegin + faultTable(t) + faultsEnd + after
	if *update {
		if err := os.WriteFile(reliabilityPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s is not what the code does (make docs writes it):\n%s", reliabilityPage, diff)
	}
}

func TestEveryKindOfFaultIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../internal/job/offsets.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`Fault\w+ +FaultKind = "(\w+)"`).FindAllStringSubmatch(string(text), -1)
	described := map[job.FaultKind]bool{}
	for _, d := range describedFaults {
		described[d.kind] = true
	}
	if len(kinds) != len(described) {
		t.Errorf("%d kinds, %d described", len(kinds), len(described))
	}
	for _, k := range kinds {
		if !described[job.FaultKind(k[1])] {
			t.Errorf("fault %q is not described in docs/reliability.md", k[1])
		}
	}
}
