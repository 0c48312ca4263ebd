package yamledit_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/yamledit"
)

func TestChangesKeepOrderAndComments(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("# head\na: 1 # one\nb: {c: 2}\nd: 3\n"), &doc); err != nil {
		t.Fatal(err)
	}
	root := doc.Content[0]
	for _, err := range []error{
		yamledit.Put(root, "a", 5), yamledit.Put(yamledit.Below(root, "b", "e"), "f", []string{"x", "z"}),
		yamledit.PutFirst(root, "first", true), yamledit.PutFirst(root, "d", 4),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	yamledit.Remove(yamledit.Get(root, "b"), "c")
	yamledit.Remove(root, "missing")
	if yamledit.Get(root, "missing") != nil {
		t.Error("a key that is not there has a value")
	}
	got, err := yamledit.Encode(&doc)
	if err != nil {
		t.Fatal(err)
	}
	const want = "first: true\n# head\na: 5 # one\nb: {e: {f: [x, z]}}\nd: 4\n"
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
