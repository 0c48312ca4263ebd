package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const schedulers = "../../examples/batch"

// shown are the command lines of kappactl in an example: of a shell, or as a list of words.
func shown(text string) [][]string {
	var out [][]string
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if _, command, found := strings.Cut(line, "kappactl batch "); found {
			command, _, _ = strings.Cut(command, ">")
			out = append(out, strings.Fields("batch "+strings.NewReplacer(`"$job"`, "flights").Replace(command)))
		}
		if list := regexp.MustCompile(`\["kappactl", (.*)\]`).FindStringSubmatch(line); list != nil {
			out = append(out, strings.Fields(strings.NewReplacer(`"`, "", ",", "", "JOB", "flights").Replace(list[1])))
		}
	}
	return out
}

func TestExamplesOfSchedulersCallCommandsThatThereAre(t *testing.T) {
	root := tree(t)[0]
	if cmd, _, err := root.Find([]string{"batch", "run"}); err != nil || cmd.Name() != "run" {
		t.Fatalf("there is no batch run: %v", err)
	}
	for _, file := range []string{"batch-run.sh", "crontab", "airflow_dag.py"} {
		text, err := os.ReadFile(filepath.Join(schedulers, file))
		if err != nil {
			t.Fatal(err)
		}
		lines := shown(string(text))
		if len(lines) == 0 {
			t.Errorf("%s: no command found: this test checks nothing", file)
		}
		for _, line := range lines {
			cmd, rest, err := root.Find(line)
			if err != nil || !strings.HasSuffix(cmd.CommandPath(), "batch run") {
				t.Errorf("%s: kappactl %s: no such command (%v)", file, strings.Join(line, " "), err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: kappactl %s: %v", file, strings.Join(line, " "), err)
			} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: kappactl %s: %v", file, strings.Join(line, " "), err)
			}
		}
	}
}

func TestTheScriptForCronPassesTheExitCodeOnAndIsSilentWhenAllIsWell(t *testing.T) {
	t.Parallel()
	for code, says := range map[int]string{
		0: "", 4: "the run goes on", 5: "readers keep the old results", 6: "another run is under way", 7: "records are missing",
		8: "failed", 11: "nothing was asked for",
	} {
		bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
		program := fmt.Sprintf("#!/bin/sh\necho '{\"exit_code\":%d}'\necho \"error: of $3\" >&2\nexit %[1]d\n", code)
		if err := os.WriteFile(filepath.Join(bin, "kappactl"), []byte(program), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		cmd := exec.Command("sh", filepath.Join(schedulers, "batch-run.sh"), "flights", log)
		cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if got := exitCode(t, cmd, err); got != code {
			t.Errorf("exit %d, not %d: %s", got, code, out)
		}
		if says == "" && len(out) > 0 || !strings.Contains(string(out), says) || says != "" && !strings.Contains(string(out), "error: of flights") {
			t.Errorf("exit %d: prints %q", code, out)
		}
		if line, err := os.ReadFile(log); err != nil || string(line) != fmt.Sprintf("{\"exit_code\":%d}\n", code) {
			t.Errorf("the log holds %q (%v)", line, err)
		}
	}
}
