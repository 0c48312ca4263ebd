package config

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Env is the part of the process and the machine that Load reads.
type Env struct {
	Getenv  func(string) string
	Dir     string // working folder
	UserDir string // the user's configuration folder; empty: none
	TempDir string // default of agent.temp
	Root    fs.FS  // the machine's files, for the memory limits; nil: unknown
}

// System is the Env of this process.
func System() Env {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	user, err := os.UserConfigDir()
	if err != nil {
		user = "" // no home: a container
	}
	return Env{Getenv: os.Getenv, Dir: dir, UserDir: user, TempDir: os.TempDir(), Root: os.DirFS("/")}
}

func (e Env) get(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

func (e Env) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Dir, p)
}

func (e Env) temp() string {
	if e.TempDir != "" {
		return e.TempDir
	}
	return os.TempDir()
}

const mostMemory = 1_000_000_000

// memory is the default of agent.memory: the smaller of 1 GB and half of what the machine or the cgroup allows.
func (e Env) memory() int64 {
	limit := int64(mostMemory)
	if e.Root == nil {
		return limit
	}
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := fs.ReadFile(e.Root, name); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n/2)
			}
		}
	}
	if text, err := fs.ReadFile(e.Root, "proc/meminfo"); err == nil {
		if n := memTotal(text); n > 0 {
			limit = min(limit, n/2)
		}
	}
	return limit
}

// memTotal is the machine's memory in bytes, or 0.
func memTotal(meminfo []byte) int64 {
	for line := range bytes.Lines(meminfo) {
		fields := strings.Fields(string(line))
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return n * 1024
			}
		}
	}
	return 0
}
