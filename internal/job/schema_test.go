package job_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
)

const published = "../../docs/job.schema.json"

func schemaText(t *testing.T) []byte {
	t.Helper()
	text, err := job.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("job.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("job.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaInSync(t *testing.T) {
	want := schemaText(t)
	if *update {
		if err := os.WriteFile(published, want, 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("docs/job.schema.json is not what the parser says; run: make docs\n%s", diff)
	}
}

func TestEveryFileThatParseTakesIsValidByTheSchema(t *testing.T) {
	s := compileSchema(t)
	valid := 0
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/refused/*.yaml", "testdata/*.yaml", "testdata/hash/*.yaml", "testdata/wrong/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			if _, err := job.Read(path); err != nil {
				continue
			}
			valid++
			if err := s.Validate(asData(t, path)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if valid < 15 {
		t.Errorf("only %d valid files: this test checks too little", valid)
	}
}

// TestTheSchemaSeesWhatOneValueShows: what is left to the parser is listed, so that a schema that says nothing does not
// pass.
func TestTheSchemaSeesWhatOneValueShows(t *testing.T) {
	s := compileSchema(t)
	unseen := map[string]bool{}
	for _, name := range []string{
		"check_twice", "check_where", "check_with_both", "check_without_sql", "column_empty_name", "column_too_long", "column_underscore", "columns_differ_in_case",
		"dead_letter_over_100", "duration_too_long", "keep_too_short", "live_too_short", "order_by_without_key", "replay_offsets_form",
		"replay_offsets_other_topic", "test_number", "unknown_type", "unknown_type_string", "type_arguments", "type_array", "numeric_out_of_range",
		"numeric_without_precision", "unit_on_text", "view_in_pg_catalog", "view_of_a_version", "view_three_parts", "view_too_long",
		"view_unclosed_quote", "view_upper_case", "blank_query", "tag", "merge_key", "anchor_and_alias", "long_line", "two_documents",
		"several", "bad_indent", "control_character", "invalid_utf8", "replay_rate_unit", "unclosed_list", "unclosed_quote", "tab_indent",
		"tombstones_with_key", "path_and_field", "path_from_the_end", "path_of_csv", "path_of_raw", "path_odd_name", "path_wildcard", "field_of_csv",
		"colon_in_value", "duplicate_column", "duplicate_key", "comment_only", "empty", "archive_roll", "replay_source_archive",
		"lambda_without_archive", "batch_zone", "experiment_weights", "experiment_one_arm", "experiment_bandit", "experiment_floor", "experiment_auto", "experiment_without_mde",
		"experiment_loss",
		"program_dots", "program_misfits", "program_of_sql", "program_relative",
	} {
		unseen[name] = true
	}
	paths, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(paths) < 50 {
		t.Fatal(paths, err)
	}
	seen := 0
	for _, path := range paths {
		if unseen[strings.TrimSuffix(filepath.Base(path), ".yaml")] {
			continue
		}
		seen++
		if err := s.Validate(asData(t, path)); err == nil {
			t.Errorf("%s is refused by the parser and valid by the schema", path)
		}
	}
	if seen < 20 {
		t.Errorf("only %d wrong files are seen", seen)
	}
}

func TestEveryKeyHasAMeaningInTheSchema(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(schemaText(t), &root); err != nil {
		t.Fatal(err)
	}
	for _, k := range job.Keys() {
		at := root
		for _, part := range strings.Split(k.Path, ".") {
			at = descend(at, part)
		}
		if text, ok := at["description"].(string); !ok || !strings.HasSuffix(text, ".") {
			t.Errorf("%s has no description in the schema: add a sentence to meaning.go", k.Path)
		}
	}
}

// descend goes to the key part, through choices, entries and list items.
func descend(s map[string]any, part string) map[string]any {
	name := strings.TrimSuffix(part, "[]")
	candidates := []any{s}
	if choices, ok := s["anyOf"].([]any); ok {
		candidates = choices
	}
	var found map[string]any
	for _, c := range candidates {
		m, _ := c.(map[string]any)
		if name == "NAME" {
			found, _ = m["additionalProperties"].(map[string]any)
		} else if p, ok := m["properties"].(map[string]any); ok && found == nil {
			found, _ = p[name].(map[string]any)
		}
	}
	if name == part {
		return found
	}
	if choices, ok := found["anyOf"].([]any); ok {
		found, _ = choices[len(choices)-1].(map[string]any)
	}
	found, _ = found["items"].(map[string]any)
	return found
}

// asData is a YAML file as a JSON validator sees it: times are texts, numbers keep their digits.
func asData(t *testing.T, path string) any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil || len(n.Content) == 0 {
		t.Fatalf("%s: %v", path, err)
	}
	return plainNode(t, n.Content[0])
}

func plainNode(t *testing.T, n *yaml.Node) any {
	t.Helper()
	if n.Kind == yaml.MappingNode {
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = plainNode(t, n.Content[i+1])
		}
		return out
	}
	if n.Kind == yaml.SequenceNode {
		out := []any{}
		for _, c := range n.Content {
			out = append(out, plainNode(t, c))
		}
		return out
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		return json.Number(n.Value)
	}
	return n.Value
}
