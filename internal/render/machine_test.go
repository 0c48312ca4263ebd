package render_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/render"
)

type machineRow struct {
	Zeta  string            `json:"zeta"`
	Alpha *float64          `json:"alpha"`
	Parts []int             `json:"parts"`
	More  map[string]string `json:"more,omitempty"`
}

func TestFormatsOfAList(t *testing.T) {
	half := 0.5
	list := []machineRow{
		{Zeta: "a, \"b\"\nc", Alpha: &half, Parts: []int{1, 2}}, {Zeta: "yes", Parts: []int{}, More: map[string]string{"k": "2026-01-01T00:00:00Z"}},
	}
	for format, want := range map[render.Format]string{
		render.FormatLines: `{"zeta":"a, \"b\"\nc","alpha":0.5,"parts":[1,2]}` + "\n" +
			`{"zeta":"yes","alpha":null,"parts":[],"more":{"k":"2026-01-01T00:00:00Z"}}` + "\n",
		render.FormatYAML: "- zeta: |-\n    a, \"b\"\n    c\n  alpha: 0.5\n  parts:\n    - 1\n    - 2\n" +
			"- zeta: \"yes\"\n  alpha: null\n  parts: []\n  more:\n    k: \"2026-01-01T00:00:00Z\"\n",
		render.FormatCSV: "zeta,alpha,parts,more\n\"a, \"\"b\"\"\nc\",0.5,\"[1,2]\",\nyes,,[],\"{\"\"k\"\":\"\"2026-01-01T00:00:00Z\"\"}\"\n",
	} {
		var b strings.Builder
		if err := render.Write(&b, format, list); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

func TestAnEmptyListHasItsNames(t *testing.T) {
	for format, want := range map[render.Format]string{
		render.FormatJSON: "[]\n", render.FormatLines: "", render.FormatYAML: "[]\n", render.FormatCSV: "zeta,alpha,parts,more\n",
	} {
		var b strings.Builder
		if err := render.Write(&b, format, []machineRow{}); err != nil || b.String() != want {
			t.Errorf("%s: %q, %v", format, b.String(), err)
		}
	}
}

func TestEveryDigitSurvives(t *testing.T) {
	raw := json.RawMessage(`{"n":123456789012345678901234567890,"f":0.1000,"s":"0x10","u":"\u2028 \ud83d\ude00 é"}`)
	var b strings.Builder
	if err := render.Write(&b, render.FormatYAML, raw); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), ": 123456789012345678901234567890\n") || !strings.Contains(b.String(), "f: 0.1000\n") {
		t.Error(b.String())
	}
	var back map[string]any
	if err := yaml.Unmarshal([]byte(b.String()), &back); err != nil || back["s"] != "0x10" || back["u"] != "\u2028 😀 é" {
		t.Errorf("%v %#v", err, back)
	}
}

func TestNoFormatPrintsNaN(t *testing.T) {
	for _, f := range render.Formats() {
		var b strings.Builder
		if err := render.Write(&b, f, map[string]float64{"x": math.NaN()}); err == nil || b.Len() > 0 {
			t.Errorf("%s: %q, %v", f, b.String(), err)
		}
	}
}
