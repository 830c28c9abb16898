// Builds under way: rows are collected, the builder runs, and arrays are read in pieces.
#include "engine/build/builds.h"

#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

#include "engine/mirror/row_checks.h"
#include "engine/mirror/vectors.h"
#include "methods/given_arrays.h"
#include "protocol/build_sample.h"

namespace pgwarp
{

namespace
{

using Clock = std::chrono::steady_clock;
constexpr auto progress_interval = std::chrono::milliseconds(100);

std::uint64_t random_token()
{
    std::uint64_t token = 0;
    while (::getrandom(&token, sizeof(token), 0) != sizeof(token)) {
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "no random numbers");
    }
    return token;
}

bool has_array(const std::vector<ArrayShape>& arrays, const char* name)
{
    return std::any_of(arrays.begin(), arrays.end(),
                       [name](const ArrayShape& array) { return std::strcmp(array.name, name) == 0; });
}

// A reporter that passes on one message in 100 ms, and each new phase at once.
std::function<void(const char*, std::uint64_t, std::uint64_t)> paced(
    const std::function<void(const ProgressReply&)>& progress)
{
    struct State {
        std::mutex mutex;
        Clock::time_point last{};
        std::string phase;
    };
    return [state = std::make_shared<State>(), progress](const char* phase, std::uint64_t done, std::uint64_t total) {
        std::lock_guard lock(state->mutex);
        const auto now = Clock::now();
        if (state->phase == phase && now - state->last < progress_interval) return;
        state->last = now;
        state->phase = phase;
        ProgressReply reply{};
        std::strncpy(reply.phase, phase, sizeof(reply.phase) - 1);
        reply.done = done;
        reply.total = total;
        progress(reply);
    };
}

}  // namespace

BuilderMaker maker_of(const MethodFactory& method, BuildKind kind)
{
    switch (kind) {
        case BuildKind::extend:
            return method.make_merge_builder;
        case BuildKind::calibrate:
            return method.make_calibrator;
        default:
            return method.make_builder;
    }
}

Build::Build(std::uint64_t owner, const BuildBeginRequest& request, const MethodFactory& method,
             const MethodFactory* second)
    : owner_(owner),
      shape_(request.shape),
      expected_rows_(request.expected_rows),
      rows_(request.shape),
      builder_(maker_of(method, request.kind)(request.shape, request.options)),
      second_(second != nullptr ? second->make_builder(request.shape, request.options) : nullptr),
      streamed_(request.kind == BuildKind::whole ? make_streamed_rows(request.shape, *builder_) : nullptr)
{
}

std::uint64_t Build::wanted_sample() const
{
    return streamed_ ? streamed_->wanted_sample(expected_rows_) : 0;
}

void Build::append(std::span<const Tid> tids, const RowView& rows, ThreadPool& pool)
{
    std::shared_lock lock(phase_mutex_);
    if (phase_ != Phase::collecting) throw BadRequest("rows for a build that runs already");
    check_rows(shape_, rows);
    try {
        streams() ? streamed_->append(tids, rows, cancel_, pool) : gather(tids, rows);
    } catch (...) {
        refused_ = true;
        throw;
    }
}

void Build::gather(std::span<const Tid> tids, const RowView& rows)
{
    // Dense rows are checked in the copy that the build keeps: the sender may still write to a shared buffer.
    const std::span<float> vectors = rows_.append(tids, rows);
    if (vectors.empty()) return;
    const auto metric = static_cast<Metric>(shape_.metric);
    if (keeps_halves(shape_)) {
        check_vectors(metric, vectors, shape_.dimensions);
    } else {
        prepare_vectors(metric, vectors, shape_.dimensions);
    }
}

void Build::give(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes, ThreadPool& pool)
{
    std::unique_lock lock(phase_mutex_);
    if (phase_ != Phase::collecting) throw BadRequest("an array for a build that runs already");
    if (!streamed_ || rows_.size() > 0 || !streamed_->give(shape, bytes, cancel_, pool))
        builder_->give(shape, offset, bytes);
}

void Build::close()
{
    std::unique_lock lock(phase_mutex_);
    if (phase_ != Phase::collecting) throw BadRequest("the build was run already");
    if (refused_) throw BadRequest("some rows of the build were refused");
    phase_ = Phase::running;
}

void Build::run_builder(const BuildProgress& progress, ThreadPool& pool)
{
    progress.report("sorting rows", 0, tids().size());
    if (streams()) return streamed_->finish(progress, pool);
    rows_.sort_by_tid(&pool);
    cancel_.check();
    try {
        builder_->run(rows_, progress, pool);
    } catch (const std::bad_alloc&) {
        // The second builder can begin anew unless the rows were compacted.
        if (!second_ || (rows_.size() > 0 && rows_.vectors().empty())) throw;
        builder_ = std::move(second_);
        builder_->run(rows_, progress, pool);
    }
}

BuildOutcome Build::run(const std::function<void(const ProgressReply&)>& progress, ThreadPool& pool)
{
    try {
        BuildProgress reporter{paced(progress), &cancel_};
        cancel_.check();
        run_builder(reporter, pool);
        BuildOutcome outcome;
        outcome.rows = tids().size();
        outcome.calibration = builder_->calibration();
        outcome.options = builder_->effective_options();
        collect_arrays();
        outcome.arrays = arrays_;
        phase_ = Phase::done;
        return outcome;
    } catch (...) {
        phase_ = Phase::failed;
        throw;
    }
}

void Build::collect_arrays()
{
    const std::vector<ArrayShape> methods = builder_->arrays();
    const std::size_t rows = tids().size();
    if (!has_array(methods, array_tid_block)) {
        arrays_.push_back(make_array_shape(array_tid_block, ArrayType::u32, rows, 1));
        arrays_.push_back(make_array_shape(array_tid_offset, ArrayType::u16, rows, 1));
        if (shape_.attribute_count > 0)
            arrays_.push_back(make_array_shape(array_attributes, ArrayType::u64, rows, shape_.attribute_count));
        own_arrays_ = arrays_.size();
    }
    arrays_.insert(arrays_.end(), methods.begin(), methods.end());
}

// Serves the row addresses from the rows, whose order the builder keeps.
void Build::read_tids(const ArrayShape& array, std::uint64_t offset, std::span<std::byte> out) const
{
    const std::span<const Tid> tids = this->tids();
    const std::uint32_t width = array_type_bytes(array.type);
    std::size_t done = 0;
    while (done < out.size()) {
        const std::uint64_t at = offset + done;
        const Tid& tid = tids[at / width];
        const std::size_t skip = at % width;
        const std::size_t bytes = std::min<std::size_t>(width - skip, out.size() - done);
        const auto* source = width == sizeof(tid.block) ? reinterpret_cast<const std::byte*>(&tid.block)
                                                        : reinterpret_cast<const std::byte*>(&tid.offset);
        std::memcpy(out.data() + done, source + skip, bytes);
        done += bytes;
    }
}

void Build::read_own(const ArrayShape& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (std::strcmp(array.name, array_attributes) != 0) return read_tids(array, offset, out);
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(rows_.rows().attributes) + offset, out.size());
}

void Build::read(std::uint32_t array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (phase_ != Phase::done) throw BadRequest("the build is not done");
    if (array >= arrays_.size()) throw BadRequest("unknown array of a build");
    const std::uint64_t bytes = arrays_[array].bytes();
    if (offset > bytes || out.size() > bytes - offset) throw BadRequest("past the end of an array");
    if (out.empty()) return;
    if (array < own_arrays_) {
        read_own(arrays_[array], offset, out);
    } else {
        builder_->read(arrays_[array].name, offset, out);
    }
}

std::uint64_t Builds::begin(std::uint64_t owner, const BuildBeginRequest& request, const MethodFactory& method,
                            const MethodFactory* second)
{
    auto build = std::make_shared<Build>(owner, request, method, second);
    const std::uint64_t token = random_token();
    std::lock_guard lock(mutex_);
    builds_.emplace(token, std::move(build));
    return token;
}

void Builds::append(Build& build, std::span<const Tid> tids, const RowView& rows)
{
    std::optional<BusyPoll::Work> work;
    if (build.streams()) work.emplace(busy_poll_, pool_.threads());
    build.append(tids, rows, pool_);
}

void Builds::give(Build& build, const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    std::optional<BusyPoll::Work> work;
    if (is_named(shape, array_sample_of)) work.emplace(busy_poll_, pool_.threads());
    build.give(shape, offset, bytes, pool_);
}

std::shared_ptr<Build> Builds::find(std::uint64_t token)
{
    std::lock_guard lock(mutex_);
    const auto found = builds_.find(token);
    if (found == builds_.end()) throw UnknownBuild();
    return found->second;
}

std::shared_ptr<Build> Builds::find_owned(std::uint64_t token, std::uint64_t owner)
{
    auto build = find(token);
    if (build->owner() != owner) throw BadRequest("the build belongs to another connection");
    return build;
}

void Builds::end(std::uint64_t token, std::uint64_t owner)
{
    const auto build = find_owned(token, owner);
    build->cancel();
    std::lock_guard lock(mutex_);
    builds_.erase(token);
}

void Builds::connection_closed(std::uint64_t connection)
{
    std::vector<std::shared_ptr<Build>> dropped;  // freed outside the lock
    std::lock_guard lock(mutex_);
    for (auto item = builds_.begin(); item != builds_.end();) {
        if (item->second->owner() == connection) {
            item->second->cancel();
            dropped.push_back(std::move(item->second));
            item = builds_.erase(item);
        } else {
            ++item;
        }
    }
}

std::uint32_t Builds::count() const
{
    std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(builds_.size());
}

BuildOutcome Builds::run_build(Build& build, const std::function<void(const ProgressReply&)>& progress)
{
    const BusyPoll::Work work(busy_poll_, pool_.threads());
    return build.run(progress, pool_);
}

void Builds::start(std::shared_ptr<Build> build, std::function<void(const ProgressReply&)> progress,
                   std::function<void(const BuildOutcome&)> done, std::function<void(const ErrorReply&)> failed)
{
    build->close();
    std::unique_lock lock(mutex_);
    const std::uint64_t run = ++runs_;
    running_.emplace(run, build);
    try {
        std::thread([this, run, build = std::move(build), progress = std::move(progress), done = std::move(done),
                     failed = std::move(failed)]() mutable {
            ::setpriority(PRIO_PROCESS, 0, build_nice);
            try {
                done(run_build(*build, progress));
            } catch (...) {
                failed(describe_exception());
            }
            progress = nullptr;
            done = nullptr;
            failed = nullptr;
            build.reset();
            std::lock_guard finished(mutex_);
            running_.erase(run);
            idle_.notify_all();
        }).detach();
    } catch (...) {
        running_.erase(run);
        throw;
    }
}

void Builds::stop()
{
    std::unique_lock lock(mutex_);
    for (auto& [token, build] : builds_) build->cancel();
    for (auto& [run, running] : running_) {
        if (const auto build = running.lock()) build->cancel();
    }
    idle_.wait(lock, [this] { return running_.empty(); });
}

}  // namespace pgwarp
