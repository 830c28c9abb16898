# A psql that stays open and runs one statement after another: its rows, and its error with SQLSTATE. Warnings count as
# errors; notices come only where a statement sets client_min_messages.
package PsqlSession;

use strict;
use warnings FATAL => 'all';

use Errno;
use IO::Handle;
use IPC::Open3 ();
use IO::Select;
use Symbol 'gensym';

my $marker = '-- end of statement';
my $marker_length = length "$marker\n";
my $longest = 100;    # seconds that a statement may take

# PsqlSession->new(connection string, path of the log of everything that is run)
sub new
{
	my ($class, $connection, $log) = @_;
	my $errors = gensym;
	local $ENV{PGOPTIONS} = "-c client_min_messages=warning -c statement_timeout=${longest}s";
	my $pid = IPC::Open3::open3(my $in, my $out, $errors, 'psql', '-XqAt', '-d', $connection);
	$in->autoflush(1);
	my $self = bless { pid => $pid, in => $in, out => $out, errors => $errors, log => $log }, $class;
	print {$in} "\\set VERBOSITY verbose\n\\pset null ~\n";
	return $self;
}

# Whether the text ends with a line that is the marker. The end alone is compared: answers may have 100 MB.
sub answered
{
	my $end = substr($_[0], -$marker_length - 1);
	return $end eq "$marker\n" || $end eq "\n$marker\n";
}

# Run SQL: (rows as lines of text, error text). A lost connection is an error too, and so is a missing answer.
sub run
{
	my ($self, $sql) = @_;
	print { $self->{log} } "$sql;\n" if $self->{log};
	local $SIG{PIPE} = 'IGNORE';
	print { $self->{in} } "$sql;\n\\echo $marker\n\\warn $marker\n";
	my %read = (out => '', errors => '');
	my $select = IO::Select->new($self->{out}, $self->{errors});
	while ($select->count)
	{
		local $! = 0;
		my @ready = $select->can_read(3 * $longest);
		next if !@ready && $!{EINTR};    # a signal, such as of a child that ended
		last if !@ready;                 # a statement that never ends
		for my $handle (@ready)
		{
			my $which = $handle == $self->{out} ? 'out' : 'errors';
			my $got = sysread $handle, $read{$which}, 65536, length $read{$which};
			$select->remove($handle) if !$got || answered($read{$which});
		}
	}
	my $ended = 0;
	for (values %read) { answered($_) ? substr($_, -$marker_length) = '' : $ended++ }
	$read{errors} .= "the connection ended\n" if $ended;
	return ([ split /\n/, $read{out} ], $read{errors});
}

# Run SQL that must succeed: its rows.
sub rows
{
	my ($self, $sql) = @_;
	my ($rows, $errors) = $self->run($sql);
	die "$sql\n$errors" if $errors =~ /^(?:psql:.*)?(?:ERROR|FATAL|PANIC)|the connection ended/m;
	return @$rows;
}

# The SQLSTATE of an error text, or an empty string.
sub state_of { my ($errors) = @_; return $errors =~ /(?:ERROR|FATAL|PANIC):\s+(\w{5}):/ ? $1 : '' }

sub close
{
	my ($self) = @_;
	close $self->{in};
	waitpid $self->{pid}, 0;
	return;
}

1;
