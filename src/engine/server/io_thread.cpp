// The loop of an I/O thread: events, parked requests, replies.
#include "engine/server/io_thread.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "engine/server/log.h"

namespace pgwarp
{

namespace
{

constexpr std::uint32_t max_in_flight = 64;               // requests of a connection
constexpr std::size_t max_unsent = std::size_t{4} << 20;  // bytes of replies that a connection doesn't read
constexpr auto greeting_patience = std::chrono::seconds(10);
constexpr int max_events = 256;
constexpr int looks_of_all = 4;  // one poll in 4 asks epoll, the others the connection answered last

}  // namespace

void wake(const std::vector<Ticket>& tickets)
{
    for (const Ticket& ticket : tickets) {
        ticket.thread->post([ticket] { ticket.thread->unpark(ticket.number, false); });
    }
}

IoThread::IoThread(Engine& engine, Handler handler)
    : engine_(engine),
      handler_(handler),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
    epoll_event event{};
    event.events = EPOLLIN;
    if (!epoll_ || !event_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot make an event loop");
    }
}

IoThread::~IoThread()
{
    stop();
}

void IoThread::start()
{
    thread_ = std::thread([this] { loop(); });
}

void IoThread::stop()
{
    stopping_ = true;
    post([] {});
    if (thread_.joinable()) thread_.join();
}

void IoThread::post(std::function<void()> task)
{
    bool first = false;
    {
        std::lock_guard lock(mailbox_mutex_);
        first = mailbox_.empty();
        mailbox_.push_back(std::move(task));
    }
    if (!first) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof(one));
}

void IoThread::adopt(FileDescriptor socket, std::uint64_t id)
{
    auto connection = std::make_shared<Connection>(std::move(socket), id);
    post([this, connection] {
        engine_.connections.fetch_add(1);
        connections_.emplace(connection->id(), connection);
        ungreeted_.emplace_back(Clock::now() + greeting_patience, connection->id());
        watch(connection);
    });
}

void IoThread::drop_other_incarnations(std::uint64_t incarnation)
{
    post([this, incarnation] {
        std::vector<ConnectionPtr> old;
        for (const auto& [id, connection] : connections_) {
            if (connection->greeted && connection->incarnation != incarnation) old.push_back(connection);
        }
        for (const ConnectionPtr& connection : old) close(connection);
    });
}

void IoThread::loop()
{
    epoll_event events[max_events];
    while (!stopping_) {
        const int count = wait_for_events(events);
        for (int i = 0; i < count; ++i) {
            if (events[i].data.u64 == 0) {
                run_mailbox();
            } else {
                handle_events(events[i].data.u64, events[i].events);
            }
        }
        expire_parked();
        const std::vector<ConnectionPtr> held_back = std::exchange(to_parse_, {});
        for (const ConnectionPtr& connection : held_back) parse(connection);
        run_round();
    }
    while (!connections_.empty()) close(ConnectionPtr(connections_.begin()->second));
    parked_.clear();
    deadlines_.clear();
}

int IoThread::wait_for_events(std::span<epoll_event> events)
{
    const int most = static_cast<int>(events.size());
    if (awake_until_ != Clock::time_point{} && next_timeout() != 0) {
        for (int look = 0;; ++look) {
            if (look % looks_of_all != 0) {
                if (poll_next_request()) return 0;
            } else if (const int count = ::epoll_wait(epoll_.get(), events.data(), most, 0); count != 0) {
                return count;
            }
            const auto now = Clock::now();
            if (now >= awake_until_ || !engine_.busy_poll.has_room(engine_.in_flight.load(), now)) break;
            rest_between_looks();
        }
        awake_until_ = Clock::time_point{};
    }
    next_sender_.reset();
    return ::epoll_wait(epoll_.get(), events.data(), most, next_timeout());
}

bool IoThread::poll_next_request()
{
    const ConnectionPtr connection = next_sender_;
    if (!connection || connection->closed() || connection->held_back || !may_parse(*connection)) return false;
    switch (connection->read()) {
        case Connection::ReadState::nothing:
            return false;
        case Connection::ReadState::ended:
            close(connection);
            return true;
        case Connection::ReadState::data:
            parse(connection);
            return true;
    }
    return false;
}

void IoThread::keep_polling(std::chrono::nanoseconds patience, Clock::time_point now)
{
    if (patience.count() > 0) awake_until_ = std::max(awake_until_, now + patience);
}

void IoThread::expect_answer(const Connection& connection)
{
    const auto now = Clock::now();
    if (engine_.busy_poll.has_room(engine_.in_flight.load(), now)) keep_polling(connection.pace.answer.patience(), now);
}

std::uint32_t IoThread::note_reply(const ConnectionPtr& connection)
{
    // No poll hint while other requests of this connection are pending.
    if (connection->in_flight != 1) return 0;
    const auto now = Clock::now();
    ConnectionPace& pace = connection->pace;
    BusyPoll::reply_goes(pace, now);
    engine_.busy_poll.look_around(engine_.in_flight.load(), now);
    const auto until_question = pace.question.patience();
    if (until_question.count() == 0 || !engine_.busy_poll.has_room(engine_.in_flight.load(), now)) return 0;
    keep_polling(until_question, now);
    next_sender_ = connection;
    return static_cast<std::uint32_t>(pace.answer.patience().count());
}

int IoThread::next_timeout() const
{
    if (!to_parse_.empty()) return 0;
    auto next = Clock::time_point::max();
    if (!deadlines_.empty()) next = deadlines_.begin()->first;
    if (!ungreeted_.empty()) next = std::min(next, ungreeted_.front().first);
    if (next == Clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000));
}

void IoThread::run_mailbox()
{
    std::uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t got = ::read(event_.get(), &ignored, sizeof(ignored));
    {
        std::lock_guard lock(mailbox_mutex_);
        mail_.swap(mailbox_);
    }
    for (auto& task : mail_) {
        task();
        task = nullptr;
    }
    mail_.clear();
}

void IoThread::expire_parked()
{
    if (deadlines_.empty() && ungreeted_.empty()) return;
    const auto now = Clock::now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) unpark(deadlines_.begin()->second, true);
    while (!ungreeted_.empty() && ungreeted_.front().first <= now) {
        const auto found = connections_.find(ungreeted_.front().second);
        ungreeted_.pop_front();
        if (found != connections_.end() && !found->second->greeted) drop(ConnectionPtr(found->second), "no greeting");
    }
}

void IoThread::park(const Request& request, Ticket ticket, Clock::time_point deadline)
{
    const auto at = deadlines_.emplace(deadline, ticket.number);
    parked_.emplace(ticket.number, Parked{request.connection,
                                          request.header,
                                          {request.payload.begin(), request.payload.end()},
                                          request.received,
                                          at});
}

void IoThread::unpark(std::uint64_t number, bool timed_out)
{
    const auto found = parked_.find(number);
    if (found == parked_.end()) return;
    const Parked parked = std::move(found->second);
    deadlines_.erase(parked.deadline);
    parked_.erase(found);
    if (parked.connection->closed()) return;
    handle({parked.connection, parked.header, parked.payload, parked.received, timed_out, true});
}

void IoThread::watch(const ConnectionPtr& connection)
{
    if (connection->closed()) return;
    std::uint32_t wanted = EPOLLRDHUP;
    if (!connection->held_back) wanted |= EPOLLIN;
    if (connection->unsent() > 0) wanted |= EPOLLOUT;
    if (wanted == connection->events) return;
    epoll_event event{};
    event.events = wanted;
    event.data.u64 = connection->id();
    const int operation = connection->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(epoll_.get(), operation, connection->fd(), &event) != 0) {
        close(connection);
        return;
    }
    connection->events = wanted;
}

bool IoThread::may_parse(const Connection& connection) const
{
    return !connection.exclusive && connection.in_flight < max_in_flight && connection.unsent() < max_unsent;
}

void IoThread::handle_events(std::uint64_t id, std::uint32_t events)
{
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const ConnectionPtr connection = found->second;
    if ((events & EPOLLOUT) != 0) {
        if (!connection->flush()) return close(connection);
        unblock(connection);
        watch(connection);
    }
    // A connection that is held back isn't read, but the death of its peer must be noticed.
    if (connection->held_back || !may_parse(*connection)) {
        if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) return close(connection);
        connection->held_back = true;
        return watch(connection);
    }
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
    switch (connection->read()) {
        case Connection::ReadState::nothing:
            return;
        case Connection::ReadState::ended:
            return close(connection);
        case Connection::ReadState::data:
            return parse(connection);
    }
}

void IoThread::parse(const ConnectionPtr& connection)
{
    const auto received = Clock::now();
    try {
        while (!connection->closed() && may_parse(*connection)) {
            const auto frame = connection->reader().next();
            if (!frame) return;
            if (connection->in_flight == 0) engine_.busy_poll.request_came(connection->pace, received);
            ++connection->in_flight;
            engine_.in_flight.fetch_add(1, std::memory_order_relaxed);
            handle({connection, frame->header, frame->payload, received});
        }
    } catch (const Malformed& error) {
        return drop(connection, error.what());
    }
    if (connection->closed()) return;
    connection->held_back = true;
    watch(connection);
}

void IoThread::handle(const Request& request)
{
    try {
        handler_(*this, request);
    } catch (const Malformed& error) {
        drop(request.connection, error.what());
    } catch (...) {
        reply_error(request.connection, request.header.request_id, describe_exception());
    }
}

void IoThread::drop(const ConnectionPtr& connection, const std::string& reason)
{
    if (connection->closed()) return;
    log_line(LogLevel::warning, "dropped a connection: " + reason);
    close(connection);
}

void IoThread::close(const ConnectionPtr& connection)
{
    if (connection->closed()) return;
    const std::uint64_t id = connection->id();
    for (auto& [number, cancel] : connection->searches) cancel->leave();
    connection->searches.clear();
    std::erase_if(round_, [&](const RoundSearch& search) { return search.connection == connection; });
    for (auto item = parked_.begin(); item != parked_.end();) {
        if (item->second.connection == connection) {
            deadlines_.erase(item->second.deadline);
            item = parked_.erase(item);
        } else {
            ++item;
        }
    }
    connection->close();
    engine_.in_flight.fetch_sub(connection->in_flight, std::memory_order_relaxed);
    connection->in_flight = 0;
    connections_.erase(id);
    engine_.connections.fetch_sub(1);
    engine_.residency.connection_closed(id);
    engine_.builds.connection_closed(id);
    engine_.buffers.reclaim(id);
}

// Counts a request as answered. Nothing is thrown behind a reply that has gone: the caller would send an error, too.
void IoThread::finished(const ConnectionPtr& connection) noexcept
{
    if (connection->closed()) return;
    --connection->in_flight;
    engine_.in_flight.fetch_sub(1, std::memory_order_relaxed);
    unblock(connection);
}

void IoThread::unblock(const ConnectionPtr& connection)
{
    if (!connection->held_back || !may_parse(*connection)) return;
    connection->held_back = false;
    to_parse_.push_back(connection);
    watch(connection);
}

void IoThread::reply(const ConnectionPtr& connection, std::uint64_t request_id, MessageType type, Bytes front,
                     Bytes rest, std::shared_ptr<BufferMapping> descriptor)
{
    if (connection->closed()) return;
    const std::uint32_t poll_hint_ns = note_reply(connection);
    if (request_id == unanswered) return finished(connection);
    if (!connection->send(type, request_id, poll_hint_ns, front, rest, std::move(descriptor))) return close(connection);
    if (connection->unsent() > 0) watch(connection);
    finished(connection);
}

void IoThread::acknowledge(const ConnectionPtr& connection, std::uint64_t request_id, Bytes data)
{
    reply(connection, request_id, MessageType::acknowledge, {}, data);
}

void IoThread::reply_error(const ConnectionPtr& connection, std::uint64_t request_id, const ErrorReply& error)
{
    // Idle mirrors go, so that the next request finds memory.
    const bool memory = error.code == ErrorCode::out_of_memory || error.code == ErrorCode::out_of_device_memory;
    if (memory) engine_.residency.evict_idle();
    reply(connection, request_id, MessageType::error, as_bytes(error));
}

void IoThread::send_progress(const ConnectionPtr& connection, std::uint64_t request_id, const ProgressReply& progress)
{
    // Progress may be lost: a slow reader gets a later report.
    if (connection->closed() || connection->unsent() > 0) return;
    if (!connection->send(MessageType::progress, request_id, 0, as_bytes(progress), {})) return close(connection);
    if (connection->unsent() > 0) watch(connection);
}

void IoThread::run_exclusive(const Request& request, bool little, std::function<std::vector<std::byte>()> work)
{
    if (little) return acknowledge(request.connection, request.header.request_id, work());
    auto data = std::make_shared<std::vector<std::byte>>();
    run_exclusive_on(
        engine_.copies, request, [data, work = std::move(work)] { *data = work(); },
        [this, data, connection = request.connection, id = request.header.request_id] {
            acknowledge(connection, id, *data);
        });
}

void IoThread::run_exclusive_on(Worker& worker, const Request& request, std::function<void()> work,
                                std::function<void()> finish)
{
    request.connection->exclusive = true;
    worker.post([this, connection = request.connection, id = request.header.request_id, work = std::move(work),
                 finish = std::move(finish)] {
        std::optional<ErrorReply> error;
        try {
            work();
        } catch (...) {
            error = describe_exception();
        }
        post([this, connection, id, error, finish] {
            connection->exclusive = false;
            if (error) {
                reply_error(connection, id, *error);
            } else {
                finish();
            }
        });
    });
}

}  // namespace pgwarp
