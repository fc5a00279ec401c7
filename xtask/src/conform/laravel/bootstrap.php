<?php
// A small application: its middleware, its configuration, and its routes.
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Http\Kernel as HttpKernel;
use Illuminate\Cookie\Middleware\EncryptCookies;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Exceptions\Handler;
use Illuminate\Foundation\Http\Kernel;
use Illuminate\Foundation\Http\Middleware\VerifyCsrfToken;
use Illuminate\Session\Middleware\StartSession;

class AppKernel extends Kernel
{
    protected $middlewareGroups = ['web' => [EncryptCookies::class, StartSession::class, VerifyCsrfToken::class]];
}

$app = new Application(__DIR__);
$app->singleton(HttpKernel::class, AppKernel::class);
$app->singleton(ExceptionHandler::class, Handler::class);
$app->booted(fn () => $app['router']->middleware('web')->group(__DIR__ . '/routes.php'));

return $app;
