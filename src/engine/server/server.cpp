#include "engine/server/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "engine/server/handlers.h"
#include "engine/server/log.h"
#include "engine/server/process.h"

namespace pgwarp
{

namespace
{

constexpr auto drain_patience = std::chrono::seconds(3);  // less than the launcher gives the engine

}  // namespace

Server::Server(const EngineOptions& options, Device& device)
    : listener_(listen_on(options.socket)), event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), engine_(options, device)
{
    if (!event_) throw std::system_error(errno, std::generic_category(), "cannot make an event descriptor");
    engine_.on_drain = [this] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof(one));
    };
    engine_.on_restart = [this](std::uint64_t incarnation) {
        for (auto& thread : threads_) thread->drop_other_incarnations(incarnation);
    };
    for (std::size_t i = 0; i < options.io_threads; ++i)
        threads_.push_back(std::make_unique<IoThread>(engine_, handle_request));
}

Server::~Server() = default;

void Server::stop(const std::string& reason)
{
    engine_.drain(reason);
}

void Server::run(int signals)
{
    for (auto& thread : threads_) thread->start();
    log_line(LogLevel::log, "serving on " + engine_.device.description());
    pollfd watched[] = {{listener_.get(), POLLIN, 0}, {event_.get(), POLLIN, 0}, {signals, POLLIN, 0}};
    while (!engine_.draining()) {
        if (::poll(watched, 3, -1) < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "poll");
        if ((watched[2].revents & POLLIN) != 0) stop("asked to");
        if ((watched[0].revents & POLLIN) != 0) accept_all();
    }
    finish();
}

void Server::accept_all()
{
    while (true) {
        FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) {
            adopt(std::move(socket));
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            // Out of descriptors or memory: present connections are served, new ones wait in the backlog.
            log_line(LogLevel::warning, "cannot accept a connection: " + std::generic_category().message(errno));
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return;
    }
}

void Server::adopt(FileDescriptor socket)
{
    const auto peer = peer_credentials(socket.get());
    if (!peer || !peer_is_allowed(peer->uid, ::geteuid())) {
        log_line(LogLevel::warning, "refused a connection of user " + (peer ? std::to_string(peer->uid) : "(unknown)"));
        return;
    }
    const std::uint64_t id = ++next_id_;
    threads_[id % threads_.size()]->adopt(std::move(socket), id);
}

void Server::finish()
{
    listener_.reset();
    engine_.builds.stop();
    const auto deadline = Clock::now() + drain_patience;
    while (engine_.in_flight.load() > 0 && Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // Closing the connections cancels their searches and builds.
    for (auto& thread : threads_) thread->stop();
    engine_.builds.stop();
    engine_.searches.stop();
    engine_.spread.stop();
    engine_.loads.stop();
    engine_.copies.stop();
}

}  // namespace pgwarp
