// Package abhttp serves experiments over HTTP: which version a subject reads, by OFREP (the OpenFeature Remote
// Evaluation Protocol) and by /v1/route, exposures, rewards, and the state of experiments. It changes no experiment.
// docs/openapi.yaml describes it; a test holds every answer against that document.
package abhttp
