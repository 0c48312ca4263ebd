//go:build !duckdb_arrow

package query

// DuckDB's Arrow interface requires a build tag. Without the tag this name makes the compiler fail with the fix.
var _ = build_with_the_tag_duckdb_arrow__export_GOFLAGS_tags_duckdb_arrow__or_use_make_test
