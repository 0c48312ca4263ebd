// Command kubernetes decodes Kubernetes objects strictly by the API's own Go types: an unknown or repeated field, a
// wrong type and an unknown kind end it with 1. Its arguments are files of YAML documents.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	failed := false
	for _, name := range os.Args[1:] {
		kinds, err := decode(name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			failed = true
		}
		for _, k := range kinds {
			fmt.Println(k)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// decode returns the kinds of the objects in a file.
func decode(name string) (kinds []string, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer func() { err = errors.Join(err, documents.Close()) }()
	buffer := make([]byte, 1<<20)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return kinds, nil
		}
		if err != nil {
			return kinds, err
		}
		_, kind, err := strict.Decode(buffer[:n], nil, nil)
		if err != nil {
			return kinds, err
		}
		kinds = append(kinds, kind.Kind)
	}
}
