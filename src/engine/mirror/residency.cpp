// The table of mirrors: lookups, loads, eviction, and status.
#include "engine/mirror/residency.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pgwarp
{

namespace
{

bool is_same_relation(MirrorKey other, const MirrorKey& key)
{
    other.generation = key.generation;
    other.device = key.device;
    return other == key;
}

bool is_other_generation(const MirrorKey& other, const MirrorKey& key)
{
    return other.generation != key.generation && is_same_relation(other, key);
}

bool is_same_index(MirrorKey other, const MirrorKey& key)
{
    other.device = key.device;
    return other == key;
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

std::string mib_text(std::uint64_t bytes)
{
    return std::to_string(bytes / mib) + " MiB";
}

}  // namespace

Residency::Residency(std::uint64_t memory, Clock::duration keep, IsGone is_gone)
    : memory_(memory), keep_(keep), is_gone_(std::move(is_gone))
{
}

Residency::Lookup Residency::find(const MirrorKey& key, Ticket ticket)
{
    std::lock_guard lock(mutex_);
    const auto found = table_.find(key);
    if (found == table_.end()) return {State::absent, nullptr};
    if (found->second.mirror) return {State::resident, found->second.mirror};
    found->second.waiters.push_back(ticket);
    return {State::loading, nullptr};
}

std::shared_ptr<Mirror> Residency::find_resident(const MirrorKey& key)
{
    std::lock_guard lock(mutex_);
    const auto found = table_.find(key);
    return found != table_.end() ? found->second.mirror : nullptr;
}

std::shared_ptr<Mirror> Residency::find_latest(const MirrorKey& relation)
{
    std::lock_guard lock(mutex_);
    const Entry* latest = nullptr;
    for (const auto& [key, entry] : table_) {
        const bool is_of_it = key.device == relation.device && is_same_relation(key, relation);
        if (entry.mirror && is_of_it && (latest == nullptr || entry.order > latest->order)) latest = &entry;
    }
    return latest != nullptr ? latest->mirror : nullptr;
}

bool Residency::has_other_generation_on_gpu(const MirrorKey& key)
{
    std::lock_guard lock(mutex_);
    return std::any_of(table_.begin(), table_.end(), [&key](const auto& item) {
        return item.second.mirror && item.second.mirror->on_cuda() && is_other_generation(item.first, key);
    });
}

std::shared_ptr<Mirror> Residency::find_any(const MirrorKey& key)
{
    std::lock_guard lock(mutex_);
    const auto found = table_.find(key);
    if (found == table_.end()) return nullptr;
    return found->second.mirror ? found->second.mirror : found->second.load->mirror;
}

Residency::State Residency::begin_load(const MirrorKey& key, std::uint64_t connection, LoadRole role,
                                       std::uint64_t bytes, std::uint64_t host_bytes, Ticket ticket)
{
    if (role != LoadRole::watch) prepare_room(host_bytes);
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    if (const auto found = table_.find(key); found != table_.end()) {
        if (found->second.mirror) return State::resident;
        Load& load = *found->second.load;
        if (load.claimed && role == LoadRole::load) {
            load.claimed = false;
            load.connection = connection;
            return State::absent;
        }
        if (load.connection == connection && role != LoadRole::watch)
            throw BadRequest("the sender is loading this index already");
        found->second.waiters.push_back(ticket);
        return State::loading;
    }
    if (role == LoadRole::watch) return State::absent;
    try {
        make_room_locked(host_bytes, host_bytes, nullptr, dropped);
    } catch (const OutOfMemory&) {
        if (role == LoadRole::ahead) throw;
        take_other_generations_locked(key, dropped);
        make_room_locked(host_bytes, host_bytes, nullptr, dropped);
    }
    Entry entry;
    entry.order = ++loads_begun_;
    entry.load = std::make_unique<Load>(Load{connection, role == LoadRole::claim, bytes, host_bytes, nullptr, {}});
    table_.emplace(key, std::move(entry));
    return State::absent;
}

void Residency::resize_load(const MirrorKey& key, std::uint64_t host_bytes)
{
    prepare_room(host_bytes);
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    Load* const load = find_load_locked(key);
    if (load == nullptr) return;
    if (host_bytes > load->host_bytes) make_room_locked(host_bytes - load->host_bytes, host_bytes, nullptr, dropped);
    load->host_bytes = host_bytes;
}

Residency::Load* Residency::find_load_locked(const MirrorKey& key)
{
    const auto found = table_.find(key);
    return found != table_.end() ? found->second.load.get() : nullptr;
}

bool Residency::set_load(const MirrorKey& key, std::uint64_t connection, std::shared_ptr<Mirror> mirror)
{
    std::lock_guard lock(mutex_);
    Load* const load = find_load_locked(key);
    if (load == nullptr || load->connection != connection) return false;
    load->mirror = std::move(mirror);
    return true;
}

bool Residency::join_load(const MirrorKey& key, std::uint64_t connection)
{
    std::lock_guard lock(mutex_);
    Load* const load = find_load_locked(key);
    if (load == nullptr || !load->mirror || load->connection == 0 || load->connection == connection) return false;
    load->joined.insert(connection);
    return true;
}

std::shared_ptr<Mirror> Residency::find_load(const MirrorKey& key, std::uint64_t connection)
{
    std::lock_guard lock(mutex_);
    const Load* const load = find_load_locked(key);
    return load != nullptr && load->connection == connection ? load->mirror : nullptr;
}

std::shared_ptr<Mirror> Residency::find_joined(const MirrorKey& key, std::uint64_t connection)
{
    std::lock_guard lock(mutex_);
    const Load* const load = find_load_locked(key);
    if (load == nullptr || load->connection == 0) return nullptr;
    return load->connection == connection || load->joined.contains(connection) ? load->mirror : nullptr;
}

bool Residency::detach_load(const MirrorKey& key, std::uint64_t connection)
{
    std::lock_guard lock(mutex_);
    Load* const load = find_load_locked(key);
    if (load == nullptr || load->connection != connection) return false;
    load->connection = 0;
    return true;
}

void Residency::publish(const MirrorKey& key, const std::shared_ptr<Mirror>& mirror)
{
    std::vector<Ticket> waiting;
    std::vector<Entry> dropped;
    {
        std::lock_guard lock(mutex_);
        const auto found = table_.find(key);
        // The table may have been cleared meanwhile: then the loaded mirror is of another incarnation.
        if (found == table_.end() || !found->second.load || found->second.load->mirror != mirror) return;
        waiting = std::exchange(found->second.waiters, {});
        found->second.load.reset();
        found->second.mirror = mirror;
        mirror->touch();
        take_other_generations_locked(key, dropped);
    }
    wake(waiting);
}

void Residency::take_other_generations_locked(const MirrorKey& key, std::vector<Entry>& dropped)
{
    // A load that takes long may end after that of a later generation.
    const auto own = table_.find(key);
    const std::uint64_t order = own != table_.end() ? own->second.order : loads_begun_ + 1;
    for (auto item = table_.begin(); item != table_.end();) {
        if (item->second.mirror && is_other_generation(item->first, key) && item->second.order < order) {
            dropped.push_back(std::move(item->second));
            item = table_.erase(item);
        } else {
            ++item;
        }
    }
}

bool Residency::drop_other_generations(const MirrorKey& key)
{
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    take_other_generations_locked(key, dropped);
    return !dropped.empty();
}

void Residency::abandon_load(const MirrorKey& key, const std::shared_ptr<Mirror>& mirror)
{
    std::vector<Ticket> waiting;
    Entry dropped;
    {
        std::lock_guard lock(mutex_);
        const auto found = table_.find(key);
        if (found == table_.end() || !found->second.load || found->second.load->mirror != mirror) return;
        waiting = std::move(found->second.waiters);
        dropped = std::move(found->second);
        table_.erase(found);
    }
    wake(waiting);
}

void Residency::connection_closed(std::uint64_t connection)
{
    std::vector<Ticket> waiting;
    std::vector<Entry> dropped;
    {
        std::lock_guard lock(mutex_);
        for (auto item = table_.begin(); item != table_.end();) {
            Entry& entry = item->second;
            if (entry.load && entry.load->connection == connection) {
                waiting.insert(waiting.end(), entry.waiters.begin(), entry.waiters.end());
                dropped.push_back(std::move(entry));
                item = table_.erase(item);
            } else {
                if (entry.load) entry.load->joined.erase(connection);
                ++item;
            }
        }
    }
    wake(waiting);
}

void Residency::forget(const MirrorKey& key, Ticket ticket)
{
    std::lock_guard lock(mutex_);
    if (const auto found = table_.find(key); found != table_.end()) std::erase(found->second.waiters, ticket);
}

std::uint64_t Residency::used_locked() const
{
    std::uint64_t bytes = 0;
    for (const auto& [key, entry] : table_) bytes += entry.mirror ? entry.mirror->host_bytes() : entry.load->host_bytes;
    return bytes;
}

void Residency::make_room_locked(std::uint64_t bytes, std::uint64_t whole, const Mirror* except,
                                 std::vector<Entry>& dropped)
{
    if (memory_ == 0) return;
    const auto now = Clock::now();
    std::uint64_t used = used_locked();
    while (used + bytes > memory_) {
        if (whole > memory_) {
            throw IndexTooLarge("the index takes " + mib_text(whole + mib - 1) +
                                " of memory, and all indexes may take " + mib_text(memory_));
        }
        auto oldest = table_.end();
        for (auto item = table_.begin(); item != table_.end(); ++item) {
            const auto& mirror = item->second.mirror;
            if (!mirror || mirror.get() == except || now - mirror->last_used() < keep_) continue;
            if (oldest == table_.end() || mirror->last_used() < oldest->second.mirror->last_used()) oldest = item;
        }
        if (oldest == table_.end()) {
            throw OutOfMemory("no memory for " + mib_text(bytes + mib - 1) + ": indexes that are in use take " +
                              mib_text(used) + " of " + mib_text(memory_));
        }
        used -= std::min(used, oldest->second.mirror->host_bytes());
        dropped.push_back(std::move(oldest->second));
        table_.erase(oldest);
    }
}

void Residency::prepare_room(std::uint64_t bytes)
{
    {
        std::lock_guard lock(mutex_);
        if (memory_ == 0 || used_locked() + bytes <= memory_) return;
    }
    drop_gone();
}

void Residency::make_room(std::uint64_t bytes, const Mirror* except)
{
    prepare_room(bytes);
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    make_room_locked(bytes, except->host_bytes() + bytes, except, dropped);
}

void Residency::release(const MirrorKey& key)
{
    gpu_refusals_.forget(key);
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    for (auto item = table_.begin(); item != table_.end();) {
        if (item->second.mirror && is_same_index(item->first, key)) {
            dropped.push_back(std::move(item->second));
            item = table_.erase(item);
        } else {
            ++item;
        }
    }
}

void Residency::clear()
{
    std::vector<Ticket> waiting;
    Table dropped;
    {
        std::lock_guard lock(mutex_);
        for (auto& [key, entry] : table_) waiting.insert(waiting.end(), entry.waiters.begin(), entry.waiters.end());
        dropped.swap(table_);
        gpu_refusals_.clear();
    }
    wake(waiting);
}

void Residency::evict_idle()
{
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (auto item = table_.begin(); item != table_.end();) {
        if (item->second.mirror && now - item->second.mirror->last_used() >= keep_) {
            dropped.push_back(std::move(item->second));
            item = table_.erase(item);
        } else {
            ++item;
        }
    }
}

void Residency::evict_idle_of(std::int32_t gpu, std::uint64_t bytes)
{
    drop_gone();
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (std::uint64_t freed = 0; freed < bytes;) {
        auto oldest = table_.end();
        for (auto item = table_.begin(); item != table_.end(); ++item) {
            const auto& mirror = item->second.mirror;
            if (!mirror || mirror->searcher().residence().gpu != gpu || now - mirror->last_used() < keep_) continue;
            if (oldest == table_.end() || mirror->last_used() < oldest->second.mirror->last_used()) oldest = item;
        }
        if (oldest == table_.end()) return;
        freed += oldest->second.mirror->searcher().residence().device_bytes;
        dropped.push_back(std::move(oldest->second));
        table_.erase(oldest);
    }
}

bool Residency::leave_gpu(const std::shared_ptr<Mirror>& mirror, std::uint64_t room, Clock::time_point now)
{
    if (!mirror->on_cuda()) return false;
    const std::uint64_t bytes = mirror->device_bytes();
    std::vector<Entry> dropped;
    std::lock_guard lock(mutex_);
    // Under the lock: a load that finds the index absent must find the refusal.
    if (take_locked(mirror, dropped)) gpu_refusals_.note(mirror->key(), bytes, room, now);
    return true;
}

void Residency::note_too_large(const MirrorKey& key, std::uint64_t bytes, std::uint64_t room)
{
    gpu_refusals_.note(key, bytes, room);
}

void Residency::return_to_gpu(std::uint64_t room, Clock::time_point now)
{
    for (const GpuRefusals::Due& due : gpu_refusals_.due(now)) {
        const auto mirror = find_latest(due.key);
        if (!mirror && due.is_old) gpu_refusals_.forget(due.key);
        if (!mirror || mirror->on_cuda() || room < due.least_room) continue;
        std::vector<Entry> dropped;
        std::lock_guard lock(mutex_);
        take_locked(mirror, dropped);
        return;
    }
}

bool Residency::take_locked(const std::shared_ptr<Mirror>& mirror, std::vector<Entry>& dropped)
{
    const auto found = table_.find(mirror->key());
    if (found == table_.end() || found->second.mirror != mirror) return false;
    dropped.push_back(std::move(found->second));
    table_.erase(found);
    return true;
}

std::vector<std::shared_ptr<Mirror>> Residency::resident() const
{
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Mirror>> list;
    for (const auto& [key, entry] : table_) {
        if (entry.mirror) list.push_back(entry.mirror);
    }
    return list;
}

void Residency::drop_gone()
{
    if (!is_gone_) return;
    std::vector<Entry> dropped;
    auto mirrors = resident();
    std::erase_if(mirrors, [this](const auto& mirror) { return !is_gone_(mirror->key()); });
    std::lock_guard lock(mutex_);
    for (const auto& mirror : mirrors) {
        gpu_refusals_.forget(mirror->key());
        take_locked(mirror, dropped);
    }
}

std::uint64_t Residency::memory_used() const
{
    std::lock_guard lock(mutex_);
    return used_locked();
}

std::vector<MirrorStatus> Residency::status() const
{
    std::lock_guard lock(mutex_);
    std::vector<MirrorStatus> list;
    list.reserve(table_.size());
    for (const auto& [key, entry] : table_) {
        MirrorStatus status{};
        if (entry.mirror) {
            status = entry.mirror->status();
        } else {
            if (entry.load->mirror) status = entry.load->mirror->status();
            status.key = key;
            status.bytes = entry.load->bytes;
            status.loading = 1;
        }
        list.push_back(status);
    }
    return list;
}

}  // namespace pgwarp
