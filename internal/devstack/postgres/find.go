package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
)

// MinVersion is the oldest supported PostgreSQL: version tables need NULLS NOT DISTINCT.
const MinVersion = 15

// BinVariable is the environment variable with the folder of the server binaries.
const BinVariable = "KAPPACTL_POSTGRES_BIN"

// Bin is a folder of server binaries.
type Bin struct {
	Dir     string
	Version int // major
}

// patterns lists where distributions install server binaries.
var patterns = [...]string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PGDG on Fedora and RHEL
	"/usr/lib/postgresql*/bin",           // SUSE
	"/usr/libexec/postgresql*",           // Alpine
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // built from source
}

// Find returns the server binaries to use. explicit, if not empty, is their folder or the path of a postgres program.
// Otherwise Find uses KAPPACTL_POSTGRES_BIN, then the first usable of PATH, pg_config and the folders of distributions,
// newest first. The error is a *NotFoundError, or describes what is wrong with the named folder.
func Find(ctx context.Context, explicit string) (Bin, error) {
	return system{
		getenv: os.Getenv, lookPath: exec.LookPath, resolve: filepath.EvalSymlinks, glob: filepath.Glob,
		output: output, install: installHint(runtime.GOOS, osRelease()),
	}.find(ctx, explicit)
}

// system is the access to the machine that finding needs.
type system struct {
	getenv   func(string) string
	lookPath func(string) (string, error)
	resolve  func(string) (string, error)
	glob     func(string) ([]string, error)
	output   func(ctx context.Context, program string, args ...string) (string, error)
	install  string
}

func (s system) find(ctx context.Context, explicit string) (Bin, error) {
	if explicit != "" {
		return s.named(ctx, "--postgres-bin", explicit)
	}
	if dir := s.getenv(BinVariable); dir != "" {
		return s.named(ctx, BinVariable, dir)
	}
	var unusable []string
	seen := map[string]bool{}
	for _, group := range [][]string{s.fromPath(), s.fromPgConfig(ctx), s.fromDistributions()} {
		var usable []Bin
		for _, dir := range group {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			bin, err := s.probe(ctx, dir)
			if err != nil {
				unusable = append(unusable, err.Error())
				continue
			}
			usable = append(usable, bin)
		}
		if len(usable) > 0 {
			sort.SliceStable(usable, func(i, j int) bool { return usable[i].Version > usable[j].Version })
			return usable[0], nil
		}
	}
	return Bin{}, &NotFoundError{Unusable: unusable, Install: s.install}
}

// named uses the folder that a person named, or returns why it is unusable. Searching elsewhere would hide a typing
// error.
func (s system) named(ctx context.Context, origin, path string) (Bin, error) {
	dir := path
	if filepath.Base(path) == "postgres" {
		if resolved, err := s.resolve(path); err == nil {
			dir = filepath.Dir(resolved)
		}
	}
	bin, err := s.probe(ctx, dir)
	if err != nil {
		return Bin{}, fmt.Errorf("%s %s: %w", origin, path, err)
	}
	return bin, nil
}

// fromPath follows symbolic links, since a server finds its files beside the real program.
func (s system) fromPath() []string {
	var dirs []string
	for _, name := range []string{"postgres", "initdb"} {
		path, err := s.lookPath(name)
		if err != nil {
			continue
		}
		if resolved, err := s.resolve(path); err == nil {
			path = resolved
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// fromPgConfig returns nothing if pg_config is missing or its folder holds no server: client packages install it too.
func (s system) fromPgConfig(ctx context.Context) []string {
	path, err := s.lookPath("pg_config")
	if err != nil {
		return nil
	}
	out, err := s.output(ctx, path, "--bindir")
	if err != nil {
		return nil
	}
	dir := strings.TrimSpace(out)
	if found, err := s.glob(filepath.Join(dir, "postgres")); err != nil || len(found) == 0 {
		return nil
	}
	return []string{dir}
}

func (s system) fromDistributions() []string {
	var dirs []string
	for _, pattern := range patterns {
		found, err := s.glob(filepath.Join(pattern, "postgres"))
		if err != nil {
			continue
		}
		for _, path := range found {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return dirs
}

// probe asks both programs of a folder for their version, because a folder may hold only one of them.
func (s system) probe(ctx context.Context, dir string) (Bin, error) {
	version := 0
	for _, name := range []string{"postgres", "initdb"} {
		out, err := s.output(ctx, filepath.Join(dir, name), "--version")
		if err != nil {
			return Bin{}, fmt.Errorf("%s cannot be used: %s does not run: %w", dir, name, err)
		}
		if version, err = parseVersion(out); err != nil {
			return Bin{}, fmt.Errorf("%s cannot be used: %w", dir, err)
		}
	}
	if version < MinVersion {
		return Bin{}, fmt.Errorf("%s is PostgreSQL %d, and %d or newer is needed", dir, version, MinVersion)
	}
	return Bin{Dir: dir, Version: version}, nil
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func parseVersion(out string) (int, error) {
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no version in %q", strings.TrimSpace(out))
	}
	return strconv.Atoi(m[1])
}

func output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment()
	out, err := cmd.Output()
	return string(out), err
}

func (b Bin) program(name string) string { return filepath.Join(b.Dir, name) }
