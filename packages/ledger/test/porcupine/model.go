package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/anishathalye/porcupine"
)

// operation is one call as the recorder of @cellkit/ledger/conformance writes it down.
type operation struct {
	Client     string   `json:"client"`
	Kind       string   `json:"kind"`
	Key        string   `json:"key"`
	BodyHash   string   `json:"bodyHash"`
	Backend    string   `json:"backend"`
	CalledUs   float64  `json:"calledUs"`
	ReturnedUs *float64 `json:"returnedUs"`
	Answer     *answer  `json:"answer"`
}

type answer struct {
	Kind     string `json:"kind"`
	Backend  string `json:"backend"`
	BodyHash string `json:"bodyHash"`
}

// record is the state of one id; the zero value is a free id.
type record struct {
	backend  string
	bodyHash string
	marked   bool
}

var free = record{}

// The ages of records are not in a history: a retirement that was answered tells whether the record was old, and a sweep may or may
// not have found one old.
var ledgerModel = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{free} },
	Step: func(state, input, _ interface{}) []interface{} {
		var next []interface{}
		for _, possible := range step(state.(record), input.(operation)) {
			next = append(next, possible)
		}
		return next
	},
	Hash: func(state interface{}) uint64 {
		hash := fnv.New64a()
		fmt.Fprint(hash, state)
		return hash.Sum64()
	},
}

// partition sorts a history by ids. A sweep concerns every id, each by itself. What was never answered, or may have been done, can
// happen at any time after its beginning.
func partition(history []operation) (map[string][]porcupine.Operation, error) {
	parts := map[string][]porcupine.Operation{}
	for _, one := range history {
		if one.Key != "" {
			parts[one.Key] = nil
		} else if one.Kind != "sweep" {
			return nil, fmt.Errorf("a %s without a key", one.Kind)
		}
	}
	for _, one := range history {
		if one.Answer != nil && one.Answer.Kind == "unchanged" {
			continue
		}
		call := porcupine.Operation{Input: one, Call: int64(one.CalledUs * 1000), Return: math.MaxInt64}
		if !isLost(one) {
			if one.ReturnedUs == nil {
				return nil, fmt.Errorf("a %s with an answer and without an end", one.Kind)
			}
			call.Return = int64(*one.ReturnedUs * 1000)
		}
		if one.Key != "" {
			parts[one.Key] = append(parts[one.Key], call)
			continue
		}
		for key := range parts {
			parts[key] = append(parts[key], call)
		}
	}
	return parts, nil
}

func isLost(one operation) bool { return one.Answer == nil || one.Answer.Kind == "maybe" }

// step answers the states that can follow; none if the answer could not have been given.
func step(state record, one operation) []record {
	if isLost(one) {
		return append(effects(state, one), state)
	}
	sees := record{backend: one.Answer.Backend, bodyHash: one.Answer.BodyHash, marked: state.marked}
	own := record{backend: one.Backend, bodyHash: one.BodyHash}
	switch one.Answer.Kind {
	case "new", "added":
		return when(state == free && sees == own, own)
	case "existing":
		return when(state != free && state == sees && state.bodyHash == one.BodyHash, state)
	case "present", "found":
		return when(state != free && state == sees, state)
	case "conflict":
		differs := state.bodyHash != one.BodyHash || (one.Kind == "restore" && state.backend != one.Backend)
		return when(state != free && differs, state)
	case "absent", "full":
		return when(state == free, state)
	case "retired":
		return when(state != free, free)
	case "kept":
		if state == free {
			return []record{free}
		}
		return []record{{state.backend, state.bodyHash, true}}
	case "swept":
		return effects(state, one)
	}
	return nil
}

// effects answers the states after a call that was done.
func effects(state record, one operation) []record {
	switch one.Kind {
	case "claim", "restore":
		// Without a chosen owner nothing can have been written.
		if state == free && one.Backend != "" {
			return []record{{backend: one.Backend, bodyHash: one.BodyHash}}
		}
	case "retire":
		if state != free {
			return []record{free, {state.backend, state.bodyHash, true}}
		}
	case "sweep":
		if state.marked {
			return []record{state, free}
		}
	}
	return []record{state}
}

func when(possible bool, next record) []record {
	if possible {
		return []record{next}
	}
	return nil
}

func describe(one operation) string {
	text, err := json.Marshal(one)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
