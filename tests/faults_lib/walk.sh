# Every call in turn.
#   group | calls | fault, with "+" also for all later calls | statuses | description in the table
# Statuses: that of a run without faults is always allowed, since some failures do no harm.
memory=malloc,calloc,realloc,reallocarray,aligned_alloc,posix_memalign
opens=open,openat,fopen,opendir,fdopendir
faults="
memory|$memory|ENOMEM|7|an allocation fails
memory|$memory|ENOMEM+|7|allocations fail from one on
mapping|mmap|ENOMEM|7|a file cannot be mapped, for want of memory
mapping|mmap|EACCES|3 6 7|a file or memory cannot be mapped
opens|$opens|EMFILE|7|no descriptors are left for one file
opens|$opens|EMFILE+|7|no descriptors are left from one on
opens|$opens|EACCES|3 6|a file or directory may not be opened
opens|$opens|EIO|3 6|a file or directory cannot be opened: I/O error
opens|O_DIRECT|EINVAL+|3|a filesystem that cannot read past the page cache
copies|fcntl,memfd_create|EMFILE|7|no descriptors are left for a lock
reads|pread,read|EIO|3 6|a read fails
reads|pread,read|EINTR||a read is interrupted
reads|pread,read|short||a read gives half of what was asked for
reads|pread,read|short+||all reads from one on give half
rings|io_uring_queue_init_params|EPERM+||io_uring is forbidden
rings|io_uring_queue_init_params|ENOSYS+||a kernel without io_uring
rings|io_uring_queue_init_params|ENOMEM||no memory for one of the rings of io_uring
ring_reads|io_uring_read|EIO|3|a read by io_uring fails
ring_reads|io_uring_read|EINTR||a read by io_uring is interrupted
ring_reads|io_uring_read|EAGAIN+||io_uring cannot wait for reads
ring_reads|io_uring_read|short||a read by io_uring gives half of what was asked for
ring_reads|io_uring_read|short+||all reads by io_uring from one on give half
lists|readdir|EIO|3 6|a directory cannot be read to its end
writes|pwrite,write|ENOSPC|6|the disk is full for one write
writes|pwrite,write|ENOSPC+|6|the disk is full from one write on
writes|pwrite,write|EDQUOT|6|a quota is reached
writes|pwrite,write|EIO|6|a write fails
writes|pwrite,write|EINTR||a write is interrupted
writes|pwrite,write|short||a write takes half of what it was given
writes|pwrite,write|short+||all writes from one on take half
space|fallocate,ftruncate|ENOSPC|6|no space for the whole file
space|fallocate|EOPNOTSUPP+||a filesystem that cannot reserve space
space|fallocate,ftruncate|EINTR||reserving space is interrupted
copying|copy_file_range|ENOSPC|6|the disk is full while a checkpoint is copied
copying|copy_file_range|EIO||copying inside the kernel fails
copying|copy_file_range|EXDEV+||a filesystem that does not copy
copying|copy_file_range|EINTR||copying is interrupted
copying|copy_file_range|short+||copying is done in pieces
syncs|fsync,fdatasync,syncfs|EIO|6|a sync fails
syncs|fsync,fdatasync,syncfs|ENOSPC+|6|the disk is found full by sync
syncs|fsync,fdatasync,syncfs|EDQUOT|6|a quota is reached at sync
syncs|fsync,fdatasync,syncfs|EINTR|6|a sync is interrupted
closes|close|EIO|6|close reports an I/O error
closes|close|ENOSPC|6|close reports a full disk
closes|close|EDQUOT|6|close reports a quota
closes|close|EINTR||close is interrupted
renames|rename,renameat2,link|ENOSPC|6|no space for a name
renames|rename,renameat2,link|EACCES|6|a name may not be changed
renames|rename,renameat2,link|EIO|6|a rename fails
renames|renameat2|EINVAL+||a filesystem without renames that never replace
removals|unlink,unlinkat,rmdir|EACCES|6|a file may not be removed
directories|mkdir|ENOSPC|6|no space for a directory
directories|mkdir|EACCES|6|a directory may not be made
stats|stat,lstat,fstat,fstatat,statx,faccessat|EIO|3 6|a file cannot be examined
locks|flock|ENOLCK+||a filesystem without locks
locks|flock|EIO|6|a lock fails
threads|pthread_create|EAGAIN|7|a thread cannot be started
writeback|sync_file_range|EIO|6|what was written did not reach the disk
advice|madvise,posix_fadvise|EIO+||advice on caching is refused
signal|$opens,pwrite,ftruncate,fallocate,copy_file_range,fsync,close,rename,renameat2,unlink,unlinkat,rmdir,mkdir|TERM|143|SIGTERM at each call that changes a file
signal|open,openat,fallocate,pwrite,fsync,close,rename,renameat2,unlink|INT|130|SIGINT at calls that change a file
signal|open,openat,fallocate,pwrite,fsync,close,rename,renameat2,unlink|HUP|129|SIGHUP at calls that change a file
kill|$opens,pwrite,ftruncate,fallocate,copy_file_range,fsync,close,rename,renameat2,unlink,unlinkat,rmdir,mkdir|KILL|137|kill -9 at each call that changes a file
"

list_walks() {
    local case group calls with rest
    while IFS='|' read -r group calls with rest; do
        [ "$group" ] || continue
        for case in $cases; do
            # direct reads end inside a block only at the end of the file
            [[ $case/$group/$with = direct/reads/short* || $case/$group/$with = ahead/reads/short+ ]] || echo "walk/$case/$group/$with"
        done
    done <<<"$faults"
}

# The numbers of the calls to try: all, or some spread evenly with the first and the last.
numbers() { # how many calls there are
    if [ "$1" -le "$most" ]; then
        seq "$1"
    else
        awk -v n="$1" -v m="$most" 'BEGIN { for (i = 0; i < m; i++) print 1 + int(i * (n - 1) / (m - 1) + 0.5) }'
    fi
}

# The number of calls in a run without faults; counted once for each set of calls.
count_calls() { # calls, FAULT_...
    # shellcheck disable=SC2155
    local counted=$case_dir/calls.${1//,/_}.$([[ $* = *FAULT_PATH* ]] && echo out) n
    if ! [ -s "$counted" ]; then
        attempt LD_PRELOAD="$shim" "${@:2}" FAULT_AT=0
        read -r _ n <told
        echo "$n" >"$counted"
    fi
    cat "$counted"
}

judge() { # UNIT, number, allowed statuses
    local found environment="${fault[*]#FAULT_}" group
    IFS=/ read -r _ _ group _ <<<"$1"
    found=$(
        # plan measures with files in memory, so a failure there is a lack of memory
        [[ " $(cat "$case_dir/status") $3 $([[ $form = changing_answer && $3 ]] && echo 7) " = *" $status "* ]] || echo "status $status"
        said
        if [ "$status" = 137 ]; then
            comes_right_after_kill
        elif [ "$group" = removals ] || [[ $group = lists && $(cat err) = *'is in place, but what it replaced is left'* ]]; then
            out_is_right may_litter # what cannot be removed is left, and was said
        else
            out_is_right
        fi
    )
    [ "$found" ] && wrong_here "$found" "$environment ${args[*]}" "$1"
}

wrong_here() { # what, command, UNIT
    (cd "$work" && wrong "$3" "$(tr '\n' ';' <<<"$1") [$2]")
}

run_walk() { # UNIT
    local unit=$1 name group with line calls allowed n number fault told
    IFS=/ read -r _ name group with <<<"$unit"
    line=$(grep -F -- "|$with|" <<<"$faults" | grep "^$group|" | head -n 1)
    IFS='|' read -r _ calls _ allowed _ <<<"$line"
    describe_case "$name"
    local case_dir=$work/case/$name
    fault=("FAULT_CALLS=$calls" "FAULT_WITH=${with%+}" FAULT_TOLD=told)
    [[ $with = *+ ]] && fault+=(FAULT_STAYS=1)
    [[ $group = kill || $group = signal ]] && fault+=(FAULT_PATH=out)
    n=$(count_calls "$calls" "${fault[@]}")
    declare -A statuses=()
    local tried=0
    for number in $(numbers "$n"); do
        attempt LD_PRELOAD="$shim" "${fault[@]}" "FAULT_AT=$number"
        # shellcheck disable=SC2094 # the variable is another than the file
        read -r told _ 2>/dev/null <told || told=
        [ "$told" = calls ] && continue # threads have made fewer of them this time
        grep -q 'Sanitizer: CHECK failed' err && continue # the sanitizer itself had no memory
        tried=$((tried + 1))
        statuses[$status]=$((${statuses[$status]:-0} + 1))
        fault+=("FAULT_AT=$number") && judge "$unit" "$number" "$allowed"
        unset "fault[-1]"
    done
    [ $tried -gt 0 ] && row "$unit" "$group" "$with" $tried
}

row() { # UNIT, group, fault, number tried; statuses from the caller
    local status text=
    for status in "${!statuses[@]}"; do text+="$status:${statuses[$status]} "; done
    echo "$2 $3 $4 $text" >"$work/results/${1//\//_}.rows"
}
