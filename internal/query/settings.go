package query

import (
	"fmt"
	"strconv"
	"strings"
)

// Config bounds a Session. Zero fields mean defaults.
type Config struct {
	Memory    int64  // bytes, default 256 MB
	Temp      string // folder for spill files; each session creates its own folder inside; empty: no spilling
	TempLimit int64  // limit of spill files in bytes, default 10 GB
	Threads   int    // default 1

	plain bool // without the limiting macros
}

func (c Config) withDefaults() Config {
	if c.Memory <= 0 {
		c.Memory = 256e6
	}
	if c.TempLimit <= 0 {
		c.TempLimit = 10e9
	}
	if c.Threads <= 0 {
		c.Threads = 1
	}
	return c
}

// settings returns the statements that lock down a fresh engine, in order. The last one makes the settings final. spill
// is the session's own folder, or empty.
func (c Config) settings(spill string) []string {
	set := func(name, value string) string { return "SET " + name + " = " + value }
	out := []string{
		set("memory_limit", literal(strconv.FormatInt(c.Memory, 10)+"B")),
		set("temp_directory", literal(spill)),
	}
	if spill != "" {
		out = append(out, set("max_temp_directory_size", literal(strconv.FormatInt(c.TempLimit, 10)+"B")))
	}
	return append(out,
		set("threads", strconv.Itoa(c.Threads)),
		// DuckDB pushes filters into the scan of an Arrow view and considers them applied, but the driver's stream
		// ignores them: WHERE d >= 500 kept every record (tested with 1.5.6). Above the scan DuckDB applies them
		// itself.
		set("disabled_optimizers", literal("filter_pushdown,join_filter_pushdown")),
		set("TimeZone", literal("UTC")),
		set("Calendar", literal("gregorian")),
		set("preserve_insertion_order", "false"),
		set("autoinstall_known_extensions", "false"),
		set("autoload_known_extensions", "false"),
		set("allow_community_extensions", "false"),
		set("enable_external_access", "false"),
		set("lock_configuration", "true"),
	)
}

// literal quotes s as an SQL string, the same in DuckDB and PostgreSQL as long as it holds no backslash escapes.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ident quotes s as an SQL identifier, the same in DuckDB and PostgreSQL.
func ident(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func describe(names ...string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
