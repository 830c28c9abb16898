// The table of mirrors: resident ones, loads with their loader and waiting requests, and eviction when memory is short.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/device/gpu_refusals.h"
#include "engine/mirror/mirror.h"
#include "engine/mirror/mirror_key_hash.h"
#include "engine/server/error.h"
#include "engine/server/ticket.h"

namespace pgwarp
{

class Residency
{
public:
    // Whether an index is gone from disk. Called without the table's lock.
    using IsGone = std::function<bool(const MirrorKey& key)>;
    // memory: bytes of the host, 0 = unlimited; the device module limits those of GPUs. A mirror used within `keep` is
    // not evicted for a newcomer, unless its index is gone.
    explicit Residency(std::uint64_t memory, Clock::duration keep = std::chrono::minutes(1), IsGone is_gone = nullptr);

    enum class State { resident, loading, absent };
    struct Lookup {
        State state;
        std::shared_ptr<Mirror> mirror;
    };
    // While the index is loading, `ticket` is woken as soon as the load ends or fails.
    Lookup find(const MirrorKey& key, Ticket ticket);
    // Null unless resident.
    std::shared_ptr<Mirror> find_resident(const MirrorKey& key);
    // Resident, or being loaded by any connection: for additions of delta rows and tombstones. May be null.
    std::shared_ptr<Mirror> find_any(const MirrorKey& key);

    // Gives `connection` the role if it is free, and finds room for host_bytes by eviction, or throws OutOfMemory;
    // `bytes` is the stored size of the index. Returns `absent` when granted: the caller then makes the empty mirror
    // and hands it over by set_load(), or abandons the load.
    State begin_load(const MirrorKey& key, std::uint64_t connection, LoadRole role, std::uint64_t bytes,
                     std::uint64_t host_bytes, Ticket ticket);
    State begin_load(const MirrorKey& key, std::uint64_t connection, LoadRole role, std::uint64_t bytes, Ticket ticket)
    {
        return begin_load(key, connection, role, bytes, bytes, ticket);
    }
    // Corrects the host bytes of a load once its mirror is made: finds room, or throws OutOfMemory.
    void resize_load(const MirrorKey& key, std::uint64_t host_bytes);
    bool set_load(const MirrorKey& key, std::uint64_t connection, std::shared_ptr<Mirror> mirror);
    // Lets the connection send chunks of another's load. False when there is none.
    bool join_load(const MirrorKey& key, std::uint64_t connection);
    // The mirror that this connection is loading; null when it isn't.
    std::shared_ptr<Mirror> find_load(const MirrorKey& key, std::uint64_t connection);
    // The same, or that it has joined.
    std::shared_ptr<Mirror> find_joined(const MirrorKey& key, std::uint64_t connection);
    // The load goes on without its connection. False when the connection is not the loader.
    bool detach_load(const MirrorKey& key, std::uint64_t connection);
    // The load is complete: publishes the mirror, drops earlier generations of the relation, wakes waiting requests.
    void publish(const MirrorKey& key, const std::shared_ptr<Mirror>& mirror);
    // The load failed; `mirror` is what set_load() got, or null.
    void abandon_load(const MirrorKey& key, const std::shared_ptr<Mirror>& mirror);

    // A connection is gone: its loads are dropped, and requests that wait for them may take over.
    void connection_closed(std::uint64_t connection);
    void forget(const MirrorKey& key, Ticket ticket);

    // Drops earlier generations of the same relation, also those used lately: searches ask for the new one only. False
    // when there are none.
    bool drop_other_generations(const MirrorKey& key);
    // Whether one of them is on a GPU.
    bool has_other_generation_on_gpu(const MirrorKey& key);

    // Drops the mirrors of indexes that are gone from disk. Called before memory is refused, and every second.
    void drop_gone();

    // The GPU had no room for this index of at least `bytes`; `room` is the room that it had. The CPU serves it for a
    // while.
    void note_too_large(const MirrorKey& key, std::uint64_t bytes, std::uint64_t room);
    bool is_too_large(const MirrorKey& key) const { return gpu_refusals_.holds(key); }
    // The GPU has no room to search with this mirror: the next load of the index is for the CPU. False when the mirror
    // is not on the GPU. room: bytes that the GPU has for it, those of the mirror included.
    bool leave_gpu(const std::shared_ptr<Mirror>& mirror, std::uint64_t room, Clock::time_point now = Clock::now());
    // Drops one mirror on the CPU that the GPU refused some time ago, if the GPU now has more room than it had then,
    // and enough: the next search has the index loaded there.
    void return_to_gpu(std::uint64_t room, Clock::time_point now = Clock::now());

    // Finds room for `bytes` more in the resident mirror `except` (delta rows). Throws OutOfMemory.
    void make_room(std::uint64_t bytes, const Mirror* except);
    // Drops the mirrors of the index on all devices.
    void release(const MirrorKey& key);
    void clear();
    // Drops all mirrors that were not used within `keep`, after an allocation failed.
    void evict_idle();
    // The same for mirrors on this GPU, the least recently used first, until `bytes` are free.
    void evict_idle_of(std::int32_t gpu, std::uint64_t bytes);

    // In bytes of host memory.
    std::uint64_t memory_used() const;
    std::uint64_t memory_allowed() const { return memory_; }
    std::vector<MirrorStatus> status() const;

private:
    struct Load {
        std::uint64_t connection;  // 0 = detached
        bool claimed;              // the first connection that asks to load becomes the loader
        std::uint64_t bytes;
        std::uint64_t host_bytes;
        std::shared_ptr<Mirror> mirror;  // null until it is made
        std::unordered_set<std::uint64_t> joined;
    };
    struct Entry {
        std::shared_ptr<Mirror> mirror;
        std::unique_ptr<Load> load;
        std::vector<Ticket> waiters;
        std::uint64_t order = 0;  // in which loads were begun
    };
    using Table = std::unordered_map<MirrorKey, Entry, MirrorKeyHash>;
    Load* find_load_locked(const MirrorKey& key);
    // The resident generation on the device of the key whose load was begun last; may be null.
    std::shared_ptr<Mirror> find_latest(const MirrorKey& relation);
    // Moves the mirrors of other generations whose loads were begun earlier into `dropped`.
    void take_other_generations_locked(const MirrorKey& key, std::vector<Entry>& dropped);
    // Drops mirrors of indexes that are gone when there is no room for `bytes` more.
    void prepare_room(std::uint64_t bytes);
    std::vector<std::shared_ptr<Mirror>> resident() const;
    // Moves this very mirror out of the table. False when it is not there.
    bool take_locked(const std::shared_ptr<Mirror>& mirror, std::vector<Entry>& dropped);
    std::uint64_t used_locked() const;
    // Finds room for `bytes` more of an index that takes `whole` bytes with them. Evicted entries are moved into
    // `dropped`, to be freed after the lock. Throws OutOfMemory: IndexTooLarge where no eviction gives enough room.
    void make_room_locked(std::uint64_t bytes, std::uint64_t whole, const Mirror* except, std::vector<Entry>& dropped);

    const std::uint64_t memory_;
    const Clock::duration keep_;
    const IsGone is_gone_;
    mutable std::mutex mutex_;  // guards the table; no mirror is freed under it
    Table table_;
    GpuRefusals gpu_refusals_;
    std::uint64_t loads_begun_ = 0;
};

}  // namespace pgwarp
