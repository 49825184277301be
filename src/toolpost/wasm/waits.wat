;; Stands between a guest and `wasi:io/poll`: waits as that does, but a slice at a time, so that it can be
;; interrupted in between. To each list that is waited for it adds a timer; where nothing but the timer was
;; ready it waits again, and at the turn of a loop the engine's epoch counts.
(component
  (import "poll" (instance $poll_
    (export "pollable" (type $p (sub resource)))
    (export "poll" (func (param "in" (list (borrow $p))) (result (list u32))))))
  (alias export $poll_ "pollable" (type $pollable))
  (import "clock" (instance $clock
    (alias outer 1 $pollable (type $outer))
    (export "pollable" (type $p (eq $outer)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))

  ;; From 0: the address and the length of the list that is given back. From 16: a call's lists.
  (core module $memory_
    (memory (export "memory") 1 256)
    (global $next (export "next") (mut i32) (i32.const 16))
    (func (export "realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32)
        (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      ;; room for what is taken, and for a timer behind it
      (loop $grow
        (if (i32.gt_u (i32.add (i32.shr_u (global.get $next) (i32.const 16)) (i32.const 1)) (memory.size))
          (then
            (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
            (br $grow))))
      (local.get $at)))
  (core instance $m (instantiate $memory_))
  (alias core export $m "memory" (core memory $memory))
  (alias core export $m "realloc" (core func $realloc))

  (core func $native (canon lower (func $poll_ "poll") (memory $memory) (realloc $realloc)))
  (core func $timer (canon lower (func $clock "subscribe-duration")))
  (core func $drop (canon resource.drop $pollable))

  (core module $waits_
    (import "m" "memory" (memory 1))
    (import "m" "next" (global $next (mut i32)))
    (import "n" "native" (func $native (param i32 i32 i32)))
    (import "n" "timer" (func $timer (param i64) (result i32)))
    (import "n" "drop" (func $drop (param i32)))

    ;; Which of `count` handles at `list` are ready within so many nanoseconds; gives how many.
    (func $look (param $list i32) (param $count i32) (param $within i64) (result i32)
      (local $behind i32) (local $found i32) (local $at i32) (local $end i32)
      (local.set $behind (i32.add (local.get $list) (i32.shl (local.get $count) (i32.const 2))))
      (global.set $next (i32.add (local.get $behind) (i32.const 4)))
      (i32.store (local.get $behind) (call $timer (local.get $within)))
      (call $native (local.get $list) (i32.add (local.get $count) (i32.const 1)) (i32.const 0))
      (call $drop (i32.load (local.get $behind)))
      ;; without the timer, in whose place the last one goes
      (local.set $found (i32.load (i32.const 4)))
      (local.set $at (i32.load (i32.const 0)))
      (local.set $end (i32.add (local.get $at) (i32.shl (local.get $found) (i32.const 2))))
      (block $done
        (loop $next_one
          (br_if $done (i32.eq (local.get $at) (local.get $end)))
          (if (i32.eq (i32.load (local.get $at)) (local.get $count))
            (then
              (i32.store (local.get $at) (i32.load (i32.sub (local.get $end) (i32.const 4))))
              (local.set $found (i32.sub (local.get $found) (i32.const 1)))
              (br $done)))
          (local.set $at (i32.add (local.get $at) (i32.const 4)))
          (br $next_one)))
      (i32.store (i32.const 4) (local.get $found))
      (local.get $found))

    (func $wait (param $list i32) (param $count i32)
      (loop $again
        (br_if $again (i32.eqz (call $look (local.get $list) (local.get $count) (i64.const 100000000))))))

    ;; What a call was lent it has to give back.
    (func $give_back (param $list i32) (param $count i32)
      (loop $next_one
        (call $drop (i32.load (local.get $list)))
        (local.set $list (i32.add (local.get $list) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br_if $next_one (local.get $count)))
      (global.set $next (i32.const 16)))

    (func (export "ready") (param $self i32) (result i32)
      (local $found i32)
      (i32.store (i32.const 16) (local.get $self))
      (local.set $found (call $look (i32.const 16) (i32.const 1) (i64.const 0)))
      (call $give_back (i32.const 16) (i32.const 1))
      (local.get $found))
    (func (export "block") (param $self i32)
      (i32.store (i32.const 16) (local.get $self))
      (call $wait (i32.const 16) (i32.const 1))
      (call $give_back (i32.const 16) (i32.const 1)))
    (func (export "poll") (param $list i32) (param $count i32) (result i32)
      (if (i32.eqz (local.get $count)) (then unreachable)) ;; as the interface has it
      (call $wait (local.get $list) (local.get $count))
      (call $give_back (local.get $list) (local.get $count))
      (i32.const 0)))
  (core instance $waits (instantiate $waits_
    (with "m" (instance $m))
    (with "n" (instance
      (export "native" (func $native)) (export "timer" (func $timer)) (export "drop" (func $drop))))))

  (export $exported "pollable" (type $pollable))
  (func (export "[method]pollable.ready") (param "self" (borrow $exported)) (result bool)
    (canon lift (core func $waits "ready")))
  (func (export "[method]pollable.block") (param "self" (borrow $exported))
    (canon lift (core func $waits "block")))
  (func (export "poll") (param "in" (list (borrow $exported))) (result (list u32))
    (canon lift (core func $waits "poll") (memory $memory) (realloc $realloc))))
