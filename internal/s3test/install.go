package s3test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// errNotBuilt is a machine that cannot build the gateway.
var errNotBuilt = errors.New("versitygw cannot be built here; it needs Go and, the first time, its module proxy")

// install returns the path of the gateway's program, which is built once for each version into the user's cache.
func install() (string, error) {
	module, err := moduleFolder()
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(sums)
	folder := filepath.Join(cache, "kappactl", "bin")
	program := filepath.Join(folder, "versitygw-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // programs, as make puts them there
		return "", err
	}
	part, err := os.MkdirTemp(folder, "part-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(part) }() // the program is moved out of it
	built := filepath.Join(part, "versitygw")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", built, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir, build.Env = module, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", errNotBuilt, text)
	}
	return program, os.Rename(built, program) // of test processes that build at once, the last one's stays
}

// moduleFolder finds scripts/versitygw from the folder that a test runs in.
func moduleFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		folder := filepath.Join(dir, "scripts", "versitygw")
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find scripts/versitygw above the test's folder")
		}
		dir = parent
	}
}
