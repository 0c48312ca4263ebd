package abhttp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/pgtest"
)

// sdk is the OpenFeature server SDK for JavaScript with its OFREP provider, in a process of Node.js.
type sdk struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// openSDK installs the SDK, in the versions of the lock file, and starts it. Without npm or its packages the test is skipped.
func openSDK(t *testing.T, address string) *sdk {
	t.Helper()
	const skipped = "SKIPPED, not tested with the OpenFeature SDK: "
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "client.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", "openfeature", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(skipped + "Node.js is missing")
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	install.Dir = folder
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("%snpm ci: %v\n%s", skipped, err, out)
	}
	run := exec.CommandContext(t.Context(), node, "client.mjs", address, secret)
	run.Dir, run.Stderr = folder, os.Stderr
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = run.Wait() // it is killed at the end of the test
	})
	return &sdk{t: t, in: in, out: bufio.NewScanner(out)}
}

// details are what the SDK's getStringDetails returns.
type details struct {
	Value, Variant, Reason, ErrorCode, ErrorMessage string
	FlagMetadata                                    map[string]any
}

func (s *sdk) get(client, flag string, context map[string]any) details {
	s.t.Helper()
	ask, err := json.Marshal(map[string]any{"client": client, "flag": flag, "context": context})
	if err == nil {
		_, err = s.in.Write(append(ask, '\n'))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if !s.out.Scan() {
		s.t.Fatalf("the SDK has ended: %v", s.out.Err())
	}
	var d details
	if err := json.Unmarshal(s.out.Bytes(), &d); err != nil {
		s.t.Fatalf("%s: %v", s.out.Bytes(), err)
	}
	return d
}

func TestTheOpenFeatureSDK(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	r := newRig(t, pool)
	clock := &floodClock{}
	r.api.bucket = newBucket(perSecond, burst, clock.now)
	s := openSDK(t, r.server.URL)
	want := func(what string, got details, value, reason, code string) {
		t.Helper()
		if got.Value != value || got.Reason != reason || got.ErrorCode != code || code == "" && got.Variant != value {
			t.Errorf("%s: %+v", what, got)
		}
	}
	want("static", s.get("good", "plain", map[string]any{}), "v1", "STATIC", "")
	r.split(false, 500_000, 500_000)
	r.until("the split is not seen", func() answer { return r.flag("orders", subject("u1")) }, func(a answer) bool { return a.body["reason"] == "SPLIT" })
	for n := range 20 {
		name := fmt.Sprintf("日本 u%d", n)
		var arm string
		if err := pool.QueryRow(t.Context(), `SELECT kappactl.pick('orders', 1, $1, 'v1', '{v1,v2}')`, name).Scan(&arm); err != nil {
			t.Fatal(err)
		}
		got := s.get("good", "orders", subject(name))
		want(name, got, arm, "SPLIT", "")
		if got.FlagMetadata["run"] != 1.0 || got.FlagMetadata["relation"] != "public.orders" {
			t.Errorf("metadata: %v", got.FlagMetadata)
		}
	}
	want("pinned", s.get("good", "orders", map[string]any{"kappactl.pin_orders": "v2"}), "v2", "TARGETING_MATCH", "")
	want("no context", s.get("good", "orders", nil), "fallback", "ERROR", "TARGETING_KEY_MISSING")
	want("no text", s.get("good", "orders", subject(7)), "fallback", "ERROR", "INVALID_CONTEXT")
	want("unknown", s.get("good", "nothing", subject("u1")), "fallback", "ERROR", "FLAG_NOT_FOUND")
	want("wrong token", s.get("wrong", "orders", subject("u1")), "fallback", "ERROR", "GENERAL")
	r.exec(`UPDATE kappactl.route SET paused = true`)
	r.until("the pause is not seen", func() answer { return r.flag("orders", subject("u1")) }, func(a answer) bool { return a.body["reason"] == "DISABLED" })
	want("paused", s.get("good", "orders", subject("u1")), "v1", "DISABLED", "")

	r.api.bucket.left = 0 // no request is under way
	want("too many", s.get("good", "plain", nil), "fallback", "ERROR", "GENERAL")
	clock.rest()
	until := time.Now().Add(time.Minute) // the SDK waits for the time of Retry-After itself
	for got := s.get("good", "plain", nil); got.Value != "v1"; got = s.get("good", "plain", nil) {
		if time.Now().After(until) {
			t.Fatalf("it does not recover: %+v", got)
		}
	}
}
