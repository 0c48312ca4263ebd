package main

import (
	"bytes"
	"reflect"
	"testing"
)

func TestFailedTestsAreRunAgain(t *testing.T) {
	t.Parallel()
	args := []string{"go", "test", "-race", "-timeout", "30m", "./internal/e2e", "./..."}
	for name, c := range map[string]struct {
		output string
		want   [][]string
	}{
		"two packages": {
			output: "ok  \tm/a\t1.0s\n--- FAIL: TestX (1.00s)\n    --- FAIL: TestX/sub (0.10s)\nFAIL\nFAIL\tm/b\t2.0s\n" +
				"--- FAIL: TestY (1.00s)\nFAIL\nFAIL\tm/c\t2.000s\nFAIL\n",
			want: [][]string{
				{"go", "test", "-race", "-timeout", "30m", "-count=1", "-run", "^TestX$", "m/b"},
				{"go", "test", "-race", "-timeout", "30m", "-count=1", "-run", "^TestY$", "m/c"},
			},
		},
		"a data race":           {output: "WARNING: DATA RACE\n--- FAIL: TestX (1.00s)\nFAIL\nFAIL\tm/b\t2.0s\n"},
		"a panic":               {output: "--- FAIL: TestX (1.00s)\npanic: oh\nFAIL\tm/b\t2.0s\n"},
		"a build that failed":   {output: "--- FAIL: TestX (1.00s)\nFAIL\tm/b\t2.0s\nFAIL\tm/c [build failed]\n"},
		"no test that is named": {output: "exit status 1\nFAIL\tm/b\t2.0s\n"},
		"more than a few":       {output: "--- FAIL: A (1s)\n--- FAIL: B (1s)\n--- FAIL: C (1s)\n--- FAIL: D (1s)\nFAIL\tm/b\t2.0s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var through bytes.Buffer
			r := &reading{w: &through}
			for _, b := range []byte(c.output) {
				_, _ = r.Write([]byte{b})
			}
			if through.String() != c.output {
				t.Errorf("passed on %q", through.String())
			}
			if got := r.again(args); !reflect.DeepEqual(got, c.want) {
				t.Errorf("again: %v, want %v", got, c.want)
			}
		})
	}
}
