package abhttp

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// document is docs/openapi.yaml.
type document struct {
	paths    map[string]any
	mu       sync.Mutex
	compiler *jsonschema.Compiler // guarded by mu, with the schemas that it has made
}

const documentName = "openapi.json"

var openAPI = sync.OnceValues(func() (*document, error) {
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	d := &document{compiler: jsonschema.NewCompiler()}
	d.paths, _ = value.(map[string]any)["paths"].(map[string]any)
	return d, d.compiler.AddResource(documentName, value)
})

func openDocument(t *testing.T) *document {
	t.Helper()
	d, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// seen are the answers that tests got: method, path of the document, status.
var seen sync.Map

// documented checks an answer against the document.
func documented(t *testing.T, method, path string, a answer) {
	t.Helper()
	d := openDocument(t)
	path, _, _ = strings.Cut(path, "?")
	for _, e := range endpoints() {
		if e.method != method || !fits(e.path, path) {
			continue
		}
		seen.Store(fmt.Sprint(method, " ", e.path, " ", a.status), true)
		d.check(t, e, a)
		return
	}
	if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && a.status != http.StatusUnauthorized &&
		a.status != http.StatusForbidden && a.status != http.StatusTooManyRequests {
		t.Errorf("%s %s is no endpoint and answers %d", method, path, a.status)
	}
}

// fits reports whether a path is one of a pattern such as /v1/route/{job}.
func fits(pattern, path string) bool {
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(a, b, func(p, s string) bool { return p == s || strings.HasPrefix(p, "{") && s != "" })
}

func (d *document) check(t *testing.T, e endpoint, a answer) {
	t.Helper()
	at := fmt.Sprintf("%s %s: %d", e.method, e.path, a.status)
	of, _ := d.paths[e.path].(map[string]any)
	operation, _ := of[strings.ToLower(e.method)].(map[string]any)
	responses, _ := operation["responses"].(map[string]any)
	response, known := responses[fmt.Sprint(a.status)].(map[string]any)
	if !known {
		t.Errorf("%s is not in docs/openapi.yaml: %s", at, a.text)
		return
	}
	pointer := "#/paths/" + strings.ReplaceAll(e.path, "/", "~1") + "/" + strings.ToLower(e.method) + "/responses/" + fmt.Sprint(a.status)
	if to, is := response["$ref"].(string); is {
		pointer = to
		name := to[strings.LastIndex(to, "/")+1:]
		response = d.shared(t, name)
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 {
		if a.text != "" {
			t.Errorf("%s has a body: %s", at, a.text)
		}
		return
	}
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if _, is := content[kind]; !is {
		t.Errorf("%s is %s, which docs/openapi.yaml does not have", at, kind)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	schema, err := d.compiler.Compile(documentName + pointer + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(a.text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %s\n%v", at, a.text, err)
	}
}

// shared is a response of the document that several operations have.
func (d *document) shared(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree struct {
		Components struct{ Responses map[string]map[string]any }
	}
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree.Components.Responses[name]
}

// The document has the operations that the server has, and no others.
func TestOpenAPIInSync(t *testing.T) {
	d := openDocument(t)
	var got, want []string
	for path, of := range d.paths {
		for method := range of.(map[string]any) {
			if method != "parameters" {
				got = append(got, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, e := range endpoints() {
		want = append(want, e.method+" "+e.path)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/openapi.yaml has\n%s\nthe server has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, limit := range map[string]int{"maxBody": maxBody, "maxContext": maxContext, "maxItems": maxItems, "perSecond": perSecond} {
		text, err := os.ReadFile("../../docs/openapi.yaml")
		if err != nil || !strings.Contains(string(text), fmt.Sprint(limit)) {
			t.Errorf("docs/openapi.yaml lacks %s, %d: %v", name, limit, err)
		}
	}
}
