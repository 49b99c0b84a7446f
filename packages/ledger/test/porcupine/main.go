// Command porcupine judges a history of a ledger: JSON on standard input, exit code 0 if it is linearizable, 1 if not (the ids and what
// was asked of them are printed), 2 if it cannot tell.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const timeLimit = 60 * time.Second

func main() {
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	var history []operation
	if err := decoder.Decode(&history); err != nil {
		fmt.Fprintln(os.Stderr, "no history:", err)
		os.Exit(2)
	}
	parts, err := partition(history)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	keys := make([]string, 0, len(parts))
	for key := range parts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	model := ledgerModel.ToModel()
	code := 0
	for _, key := range keys {
		switch porcupine.CheckOperationsTimeout(model, parts[key], timeLimit) {
		case porcupine.Illegal:
			if code == 0 {
				code = 1
			}
			fmt.Println("not linearizable:", key)
			for _, one := range parts[key] {
				fmt.Printf("  [%d, %d] %s\n", one.Call, one.Return, describe(one.Input.(operation)))
			}
		case porcupine.Unknown:
			code = 2
			fmt.Println("not decided in time:", key)
		}
	}
	fmt.Printf("%d operations on %d ids\n", len(history), len(keys))
	os.Exit(code)
}
