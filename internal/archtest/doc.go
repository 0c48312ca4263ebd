// Package archtest holds no code: its tests enforce how the packages of this module may depend on one another and the
// few rules of layout that a linter cannot know. Each failure says what to do instead.
package archtest
