// SPDX-License-Identifier: MIT
// Goroutines whose stacks grow, panic and recover, move between threads and are preempted by signals, while the collector runs all the
// time: for 2400 chains of calls, or for as many seconds as its argument says. Prints how many results were wrong.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

//go:noinline
func grow(n int, s []byte) (r int) {
	defer func() {
		if e := recover(); e != nil {
			r = e.(int)
		}
	}()
	var room [200]byte
	room[n%200] = byte(n)
	t := append([]byte(nil), s...)
	if n == 0 {
		panic(len(t))
	}
	return grow(n-1, t) + int(room[n%200]) - n%256
}

// Has no calls: only a signal interrupts it.
//
//go:noinline
func spin(n uint32) (sum uint32) {
	for i := uint32(0); i < n; i++ {
		sum = sum*1664525 + i
	}
	return sum
}

// Blocks in the middle, so that it mostly returns on another thread than it began on.
//
//go:noinline
func wander(n int, c chan int) int {
	time.Sleep(time.Duration(n) * time.Millisecond)
	return n + <-c
}

func main() {
	debug.SetGCPercent(1)
	end := time.Now()
	if len(os.Args) > 1 {
		seconds, _ := strconv.Atoi(os.Args[1])
		end = end.Add(time.Duration(seconds) * time.Second)
	}
	var wg sync.WaitGroup
	var bad int64
	want := spin(1 << 22)
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			for i := 0; i < 300 || time.Now().Before(end); i++ {
				got := make(chan int, 1)
				go func() { got <- grow(i%60, make([]byte, 64+g)) }()
				if r := <-got; r != 64+g {
					atomic.AddInt64(&bad, 1)
				}
				if i%100 == 7 && spin(1<<22) != want {
					atomic.AddInt64(&bad, 1)
				}
				if i%10 == 3 {
					go func() { got <- 5 }()
					if wander(1, got) != 6 {
						atomic.AddInt64(&bad, 1)
					}
				}
			}
		}(g)
	}
	wg.Wait()
	fmt.Println("bad", bad)
}
